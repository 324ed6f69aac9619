"""The contract's names of timeframes, and the types of its results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, NotRequired

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from openbell.market.nearest import check_one_of
from openbell.market.timeframes import SHORT, SPELLINGS, Timeframe, name_of
from openbell.protocol.tool import whole

TIMEFRAMES = SHORT
DEFAULT_TIMEFRAME = "4h"
DEFAULT_BARS = 200
FORMATS = ("png", "summary", "both", "series")


def choice(names: Iterable[str]) -> Any:
    """Returns a field whose schema lists the names. The handler refuses other names and suggests the closest."""
    return Field(json_schema_extra={"enum": list(names)})


TimeframeName = Annotated[str, choice(TIMEFRAMES)] | None


def short_name(name: str, argument: str = "timeframe") -> str:
    """Returns the contract's name of a timeframe that any contract names. Raises `InvalidParameter` if none does."""
    if name not in SPELLINGS:
        check_one_of(argument, name, TIMEFRAMES)
    return name_of(SPELLINGS[name], TIMEFRAMES)


def timeframe(name: str) -> Timeframe:
    """Returns the timeframe of a name. Raises `InvalidParameter` if there is none."""
    return TIMEFRAMES[short_name(name)]


class IndicatorObject(BaseModel):
    """An indicator with overrides, which are checked against the catalogue later."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    name: str


IndicatorEntry = str | IndicatorObject


def entries(given: list[IndicatorEntry]) -> list[str | dict[str, object]]:
    """Returns the entries as strings and dictionaries."""
    return [each if isinstance(each, str) else _plain(each.model_dump()) for each in given]


def _plain(overrides: dict[str, object]) -> dict[str, object]:
    """Converts 21.0 to 21: in JSON both are the same integer."""
    return {name: whole(value) for name, value in overrides.items()}


class ParameterShape(TypedDict):
    """One parameter of an indicator."""

    name: str
    type: str
    default: float | str | bool
    min: NotRequired[float]
    max: NotRequired[float]
    choices: NotRequired[list[str]]


class IndicatorShape(TypedDict):
    """One entry of the catalogue."""

    name: str
    aliases: list[str]
    description: str
    is_overlay: bool
    parameters: list[ParameterShape]
    signals: NotRequired[list[str]]
    needs: NotRequired[list[str]]


class CatalogueResponse(TypedDict):
    """The whole catalogue."""

    indicators: list[IndicatorShape]


class LastValue(TypedDict):
    """The newest value of a line."""

    index: int
    label: str
    last_value: float | None


class SignalShape(TypedDict):
    """A signal, drawn as a dot."""

    x: int
    y: float
    label: str


class LevelShape(TypedDict):
    """A reference level."""

    y: float


class SegmentShape(TypedDict):
    """A line that shows a divergence."""

    x1: int
    y1: float
    x2: int
    y2: float
    dashed: bool


class ValuesShape(TypedDict):
    """The last values of one indicator."""

    label: str
    is_overlay: bool
    y_range: NotRequired[list[float]]
    lines: NotRequired[list[LastValue]]
    histogram: NotRequired[list[LastValue]]
    signals: NotRequired[list[SignalShape]]
    divlines: NotRequired[list[SegmentShape]]
    hlines: NotRequired[list[LevelShape]]
    note: NotRequired[Annotated[str, Field(description="why values are missing")]]


class IndicatorsResponse(TypedDict):
    """The last values of several indicators, by the names in the request."""

    symbol: str
    interval: str
    source: str
    bars: int
    indicators: dict[str, ValuesShape]
    data_source: str
