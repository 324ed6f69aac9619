"""Shapes of values: each field is taken from the attribute of its name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NotRequired

import pytest
from pydantic import Field
from typing_extensions import TypedDict

from openbell.protocol.result_fields import shaped


class PartShape(TypedDict):
    name: str
    size: Annotated[float | None, Field(description="in metres")]


class WholeShape(TypedDict):
    number: int
    time: str
    part: PartShape
    parts: Annotated[list[PartShape], Field(description="all of them")]
    spare: PartShape | None
    note: NotRequired[str]


class LargerShape(WholeShape):
    weight: float


@dataclass(frozen=True)
class Part:
    name: str
    size: float | None


@dataclass(frozen=True)
class Whole:
    number: int
    time: int
    part: Part
    parts: tuple[Part, ...]
    spare: Part | None
    note: str = "of the value"

    @property
    def weight(self) -> float:
        return 2.5


WHOLE = Whole(7, 60, Part("a", 1.5), (Part("b", None), Part("c", 2.0)), None)
SHOWN = {
    "number": 7,
    "time": "60 s",
    "part": {"name": "a", "size": 1.5},
    "parts": [{"name": "b", "size": None}, {"name": "c", "size": 2.0}],
    "spare": None,
}


def test_fields_are_taken_by_their_names_and_in_the_order_of_the_shape() -> None:
    found = shaped(WholeShape, WHOLE, time="60 s")
    assert found == SHOWN
    assert list(found) == list(SHOWN)


def test_a_shape_beside_null_is_made_too() -> None:
    assert shaped(WholeShape, Whole(7, 60, Part("a", 1.5), (), Part("d", 1.0)), time="")["spare"] == {
        "name": "d",
        "size": 1.0,
    }


def test_a_field_that_is_not_required_is_there_only_if_it_is_given() -> None:
    assert shaped(WholeShape, WHOLE, time="60 s", note="given") == {**SHOWN, "note": "given"}


def test_a_shape_that_extends_another_has_the_fields_of_both() -> None:
    found = shaped(LargerShape, WHOLE, time="60 s")
    assert list(found.items()) == [*SHOWN.items(), ("weight", 2.5)]


def test_a_value_is_not_changed_and_no_result_is_shared() -> None:
    first, second = shaped(WholeShape, WHOLE, time="1"), shaped(WholeShape, WHOLE, time="2")
    first["parts"].clear()
    assert (len(second["parts"]), len(WHOLE.parts)) == (2, 2)
    assert (first["time"], second["time"]) == ("1", "2")


def test_a_field_that_the_value_does_not_have_is_named() -> None:
    with pytest.raises(AttributeError, match="'Part' object has no attribute 'number'"):
        shaped(WholeShape, Part("a", 1.0), time="60 s")


def test_a_given_field_that_the_shape_does_not_have_is_named() -> None:
    with pytest.raises(TypeError, match="WholeShape has no field tiem"):
        shaped(WholeShape, WHOLE, tiem="60 s")
