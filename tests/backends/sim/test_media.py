from typing import Any

import pytest

from tests.backends.sim.asking import ask

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAA"
    "AABJRU5ErkJggg=="
)


def image(**settings: Any) -> dict[str, Any]:
    return {"type": "input_image", **settings}


def file(**settings: Any) -> dict[str, Any]:
    return {"type": "input_file", **settings}


@pytest.mark.parametrize(
    ("part", "told"),
    [
        (
            image(image_url=f"data:image/png;base64,{PIXEL}"),
            "an image (image/png, 70 bytes, detail auto)",
        ),
        (
            image(image_url="data:image/jpeg;base64,QUJD", detail="high"),
            "an image (image/jpeg, 3 bytes, detail high)",
        ),
        (image(image_url="data:,abc"), "an image (text/plain, 3 bytes, detail auto)"),
        (image(image_url="data:@"), "an image (of an unknown type, detail auto)"),
        (image(image_url="https://h/?key=secret"), "an image (by URL, detail auto)"),
        (image(file_id="file-1"), "an image (file id file-1, detail auto)"),
        (
            file(filename="report.pdf", file_data="data:application/pdf;base64,QUJDRA=="),
            "a file (report.pdf, application/pdf, 4 bytes)",
        ),
        (file(filename="a.csv", file_data="QUJD"), "a file (a.csv, text/csv, 3 bytes)"),
        (file(file_data="QUJD"), "a file (application/octet-stream, 3 bytes)"),
        (file(file_url="https://h/?key=secret"), "a file (by URL)"),
        (file(file_id="file-2"), "a file (file id file-2)"),
        (file(filename="<b>\n", file_id="f"), "a file (_b__, file id f)"),
        (
            {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}},
            "a sound (audio/wav, 3 bytes)",
        ),
    ],
)
async def test_a_part_is_seen_by_kind_type_and_size(part: dict[str, Any], told: str) -> None:
    answer = await ask([{"role": "user", "content": [part]}])
    assert answer.text == f"I see {told}."
    assert "secret" not in answer.text


async def test_several_parts_are_listed_before_the_answer() -> None:
    parts = [
        image(file_id="one"),
        {"type": "input_text", "text": "Well?"},
        image(file_id="two"),
        file(file_id="three"),
    ]
    answer = await ask([{"role": "user", "content": parts}])
    assert answer.text == (
        "I see an image (file id one, detail auto), an image (file id two, detail auto) "
        "and a file (file id three). You said: Well?"
    )


async def test_earlier_parts_are_not_told_again() -> None:
    items = [
        {"role": "user", "content": [image(file_id="one")]},
        {"role": "user", "content": "Well?"},
    ]
    assert (await ask(items)).text == "You said: Well?"
