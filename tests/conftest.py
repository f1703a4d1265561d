"""What holds for every test."""

import pytest
from hypothesis import settings

from tests.support.npm import Npm, installed

# No test depends on time. In continuous integration hypothesis loads a profile of its own, which
# also draws the same examples in every run.
if settings.get_current_profile_name() == "default":
    settings.register_profile("antiphon", deadline=None, print_blob=True)
    settings.load_profile("antiphon")


@pytest.fixture(scope="session")
def npm() -> Npm:
    """Node and the packages that the tests need of npm."""
    return installed()
