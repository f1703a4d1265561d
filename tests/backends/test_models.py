from antiphon.backends.echo import EchoBackend
from antiphon.backends.models import ModelTable

ONE, OTHER, REST = EchoBackend(), EchoBackend(), EchoBackend()


def test_a_model_is_answered_by_its_backend() -> None:
    models = ModelTable({"one": ONE, "other": OTHER})
    assert models.resolve("one") is ONE
    assert models.resolve("other") is OTHER


def test_an_unknown_model_is_answered_by_nobody() -> None:
    models = ModelTable({"one": ONE})
    assert models.resolve("two") is None
    assert models.resolve("ONE") is None
    assert models.resolve("") is None


def test_a_fallback_answers_every_other_name() -> None:
    models = ModelTable({"one": ONE}, fallback=REST)
    assert models.resolve("one") is ONE
    assert models.resolve("two") is REST


def test_the_models_are_listed_in_their_order_without_the_fallback() -> None:
    models = ModelTable({"b": ONE, "a": OTHER}, fallback=REST)
    assert list(models.names()) == ["b", "a"]


def test_a_table_does_not_change_with_what_it_was_made_of() -> None:
    backends = {"one": ONE}
    models = ModelTable(backends)
    backends["two"] = OTHER
    assert models.resolve("two") is None
