"""Studies and drawings of a config that are refused: each problem names its field, and one of them hides no other."""

from __future__ import annotations

from typing import Any

import pytest

from openbell.charts.config.problems import MOST
from openbell.charts.config.reading import read_config
from tests.charts.config.test_reading import PLAIN, problems_of

LINE = {"type": "Horizontal Line", "coordinates": {"price": 65000}}
VERTICAL = {"type": "Vertical Line"}


@pytest.mark.parametrize(
    ("drawing", "field", "message"),
    [
        (7, "drawings[0]", "a drawing must be an object with a type, not 7"),
        ({"type": "Horizontal Lime"}, "drawings[0].type", "did you mean 'Horizontal Line'"),
        ({"type": 7}, "drawings[0].type", "no drawing 7"),
        ({"type": "Horizontal Line"}, "drawings[0].coordinates", "needs coordinates: price"),
        ({**LINE, "colour": "red"}, "drawings[0].colour", "unknown field 'colour' is ignored"),
        ({**LINE, "style": 7}, "drawings[0].style", "style must be an object, not 7"),
        ({**LINE, "style": {"lineWidth": float("nan")}}, "drawings[0].style", "numbers of style must be finite"),
        ({**LINE, "coordinates": {}}, "drawings[0].coordinates.price", "needs price"),
        (
            {**LINE, "coordinates": {"price": 1, "prize": 2}},
            "drawings[0].coordinates.prize",
            "has no coordinate 'prize'",
        ),
        ({**LINE, "coordinates": {"price": -1}}, "drawings[0].coordinates.price", "must be a positive number, not -1"),
        ({**LINE, "coordinates": {"price": 10**400}}, "drawings[0].coordinates.price", "must be a positive number"),
        ({**LINE, "zOrder": "middle"}, "drawings[0].zOrder", "is not one of top, bottom"),
        (
            {**VERTICAL, "coordinates": {"datetime": "soon"}},
            "drawings[0].coordinates.datetime",
            "must be an ISO 8601 time",
        ),
        (
            {**VERTICAL, "coordinates": {"datetime": "0999-01-01"}},
            "drawings[0].coordinates.datetime",
            "must be between",
        ),
        (
            {"type": "Text", "coordinates": {"text": 7, "price": 1, "datetime": "2026-03-03T00:00:00Z"}},
            "drawings[0].coordinates.text",
            "text must have at most",
        ),
    ],
)
def test_a_drawing_that_is_wrong_is_a_problem(drawing: Any, field: str, message: str) -> None:
    found = problems_of(drawings=[drawing])
    assert message in found[field], found


@pytest.mark.parametrize(
    ("study", "field", "message"),
    [
        (7, "studies[0]", "a study must be an object with a name, not 7"),
        ({}, "studies[0].name", "a study needs a name"),
        ("Bolinger Bands", "studies[0].name", "did you mean 'Bollinger Bands'"),
        ({"name": "RSI", "inputz": {}}, "studies[0].inputz", "unknown field 'inputz' is ignored"),
        ({"name": "RSI", "override": 7}, "studies[0].override", "override must be an object, not 7"),
        (
            {"name": "RSI", "override": {"a": [float("inf")]}},
            "studies[0].override",
            "numbers of override must be finite",
        ),
        ({"name": "RSI", "forceOverlay": "yes"}, "studies[0].forceOverlay", "must be true or false, not 'yes'"),
        ({"name": "RSI", "inputs": 7}, "studies[0].inputs", "inputs must be an object, not 7"),
        ({"name": "RSI", "inputs": {"lenth": 7}}, "studies[0].inputs.lenth", "did you mean 'length'"),
    ],
)
def test_a_study_that_is_wrong_is_a_problem(study: Any, field: str, message: str) -> None:
    found = problems_of(studies=[study])
    assert message in found[field], found


def test_a_study_that_is_there_twice_is_named() -> None:
    assert "is there twice" in problems_of(studies=["RSI", "RSI"])["studies[1]"]


def test_the_list_of_problems_is_bounded_and_says_that_there_are_more() -> None:
    names = {f"field {number}": 7 for number in range(3 * MOST)}
    config = {
        **PLAIN,
        "drawings": [{**LINE, "coordinates": names, **names}],
        "studies": [{"name": "RSI", "inputs": names, **names}],
    }
    found = read_config(config).problems
    for severity in ("error", "warning"):
        messages = [each.message for each in found if each.severity == severity]
        assert len(messages) == MOST + 1
        assert messages[-1] == f"there are more {severity}s"


@pytest.mark.parametrize(
    ("config", "field", "message"),
    [
        ([], "config", "config must be an object, not a list"),
        ({**PLAIN, "width": True}, "width", "width must be"),
        (
            {**PLAIN, "watermark": "me", "watermarkOpacity": 2},
            "watermarkOpacity",
            "must be a number from 0 to 1, not 2",
        ),
        ({**PLAIN, "override": {"a": float("nan")}}, "override", "numbers of override must be finite"),
    ],
)
def test_a_field_that_is_wrong_is_a_problem(config: Any, field: str, message: str) -> None:
    found = {each.field: each.message for each in read_config(config).problems}
    assert message in found[field], found
