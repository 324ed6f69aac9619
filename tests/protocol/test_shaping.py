"""Shapes of values: where each field is taken from, and how its value is converted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Annotated, Any, Literal, NotRequired

import pytest
from pydantic import Field
from typing_extensions import TypedDict

from openbell.protocol.numbers import Exact
from openbell.protocol.result_fields import From, Stated, shaped


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


@dataclass(frozen=True)
class Named:
    name: str
    parts: tuple[Part, ...]
    spare: Part | None
    note: str | None


class Word(StrEnum):
    ONE = "one"


class State(Enum):
    OPEN = "open"


class ConvertedShape(TypedDict):
    word: str
    state: Literal["open", "closed"]
    amount: str | None
    day: str
    time: Annotated[str, Field(description="ISO")]
    number: Exact | None
    count: int
    numbers: dict[str, Exact | None]


@dataclass(frozen=True)
class Values:
    word: Word
    state: State
    amount: Decimal
    day: date
    time: int
    number: Decimal
    count: int
    numbers: dict[str, Decimal | None]


STATED: Stated = {"data_source": "sim", "session": "open", "as_of": "now"}
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
    assert list(found.items()) == [("weight", 2.5), *SHOWN.items()]


def test_a_value_is_not_changed_and_no_result_is_shared() -> None:
    first, second = shaped(WholeShape, WHOLE, time="1"), shaped(WholeShape, WHOLE, time="2")
    first["parts"].clear()
    assert (len(second["parts"]), len(WHOLE.parts)) == (2, 2)
    assert (first["time"], second["time"]) == ("1", "2")


class RenamedShape(Stated):
    id: Annotated[str, From("name"), Field(description="another word")]
    part_size: Annotated[float | None, From("spare.size")]
    others: Annotated[list[PartShape], From("parts")]
    note: NotRequired[Annotated[str, From("note")]]


def test_a_field_is_taken_from_the_attribute_that_its_type_names() -> None:
    found = shaped(RenamedShape, Named("x", (Part("b", None),), Part("d", 1.0), "n"), **STATED)
    parts: dict[str, Any] = {"id": "x", "part_size": 1.0, "others": [{"name": "b", "size": None}], "note": "n"}
    assert list(found.items()) == [*parts.items(), *STATED.items()]


def test_a_path_through_nothing_is_null_and_a_field_that_may_be_absent_is_absent() -> None:
    found = shaped(RenamedShape, Named("x", (), None, None), **STATED)
    assert found == {"id": "x", "part_size": None, "others": [], **STATED}
    assert "note" not in shaped(WholeShape, WHOLE, time="60 s", note=None)


def test_values_are_converted_by_the_type_of_the_field() -> None:
    values: dict[str, Any] = {
        "word": Word.ONE,
        "state": State.OPEN,
        "amount": Decimal("1.50"),
        "day": date(2026, 1, 2),
        "time": 60,
        "number": Decimal("1.50"),
        "count": 3,
        "numbers": {"a": Decimal(1), "b": None},
    }
    wanted: dict[str, Any] = {
        "word": "one",
        "state": "open",
        "amount": "1.5",
        "day": "2026-01-02",
        "time": "1970-01-01T00:01:00+00:00",
        "number": 1.5,
        "count": 3,
        "numbers": {"a": 1.0, "b": None},
    }
    taken, given = shaped(ConvertedShape, Values(**values)), shaped(ConvertedShape, None, **values)
    assert taken == given == wanted
    assert [type(each) for each in taken.values()] == [type(each) for each in wanted.values()], "no enum is left"


def test_an_own_field_may_be_a_shape_or_its_value() -> None:
    made: PartShape = {"name": "a", "size": 2.0}
    found = shaped(WholeShape, WHOLE, time="", part=Part("z", 0.0), spare=made)
    assert (found["part"], found["spare"]) == ({"name": "z", "size": 0.0}, made)


def test_a_field_that_the_value_does_not_have_is_named() -> None:
    with pytest.raises(AttributeError, match="'Part' object has no attribute 'number'"):
        shaped(WholeShape, Part("a", 1.0), time="60 s")


def test_a_given_field_that_the_shape_does_not_have_is_named() -> None:
    with pytest.raises(TypeError, match="WholeShape has no field tiem"):
        shaped(WholeShape, WHOLE, tiem="60 s")
