"""What holds for every test."""

from hypothesis import settings

# No test depends on time. In continuous integration hypothesis loads a profile of its own, which
# also draws the same examples in every run.
if settings.get_current_profile_name() == "default":
    settings.register_profile("antiphon", deadline=None, print_blob=True)
    settings.load_profile("antiphon")
