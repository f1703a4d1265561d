from pathlib import Path

from tests.json import golden


def test_nothing_that_was_recorded_has_gone() -> None:
    gone = sorted(set(golden.read()) - set(golden.lines()))
    assert not gone, (
        f"clients rely on what has gone; if that is meant, take it out of {golden.GOLDEN.name}"
    )


def test_everything_is_recorded() -> None:
    new = sorted(set(golden.lines()) - set(golden.read()))
    assert not new, "to record what is new, run: python -m tests.json.golden"


def test_the_record_is_in_order() -> None:
    recorded = golden.read()
    assert recorded == sorted(set(recorded))


def test_recording_keeps_what_is_recorded_already(tmp_path: Path) -> None:
    path = tmp_path / "plans.golden"
    path.write_text("antiphon.v1.Gone field x key=x string\n")
    golden.write(path)
    assert set(path.read_text().splitlines()) == {
        "antiphon.v1.Gone field x key=x string",
        *golden.lines(),
    }


def test_the_record_covers_the_api() -> None:
    names = {message.name for message in golden.descriptors()}
    assert {"CreateResponseRequest", "Response", "Item", "ResponseStreamEvent", "Tool"} <= names
    assert {"ErrorResponse", "ListModelsResponse", "DeleteResponseResponse"} <= names
