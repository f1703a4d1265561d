import math

import pytest

from tests.bench.__main__ import SECTIONS
from tests.bench.table import Figure, line


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_measures_something(section: str) -> None:
    figures = list(SECTIONS[section](True))
    assert figures
    for figure in figures:
        assert math.isfinite(figure.value), figure
        assert figure.value > 0, figure


@pytest.mark.parametrize(
    ("value", "better", "verdict"),
    [
        (5.0, "more", "aim"),
        (4.5, "more", "goal"),
        (3.9, "more", "MISSED"),
        (4.0, "less", "goal"),
        (4.1, "less", "MISSED"),
    ],
)
def test_a_figure_is_held_to_its_goals(value: float, better: str, verdict: str) -> None:
    aim = 5.0 if better == "more" else 3.0
    assert better in ("more", "less")
    figure = Figure(
        name="x",
        value=value,
        unit="x",
        least=4.0,
        aim=aim,
        better="more" if better == "more" else "less",
    )
    assert figure.verdict == verdict
    assert verdict in line(figure)
