"""The contract's names of timeframes, and the types of its results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, NotRequired

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from openbell.market.sessions import SESSIONS
from openbell.market.timeframes import SHORT, Timeframe, name_of, parse_timeframe
from openbell.protocol.numbers import Exact
from openbell.protocol.result_fields import Stated
from openbell.protocol.tool import whole

TIMEFRAMES = SHORT
DEFAULT_TIMEFRAME = "4h"
DEFAULT_BARS = 200
FORMATS = ("png", "summary", "both", "series")


def choice(names: Iterable[str]) -> Any:
    """Returns a field whose schema lists the names. The handler refuses other names and suggests the closest."""
    return Field(json_schema_extra={"enum": list(names)})


TimeframeName = Annotated[str, choice(TIMEFRAMES)] | None
SessionName = Annotated[
    str,
    Field(
        description="regular: without the extended hours of stocks, in bars and indicators",
        json_schema_extra={"enum": list(SESSIONS)},
    ),
]


def timeframe(name: str) -> Timeframe:
    """Returns the timeframe of a name in any spelling. Raises `InvalidTimeframe` if there is none."""
    return parse_timeframe(name, TIMEFRAMES)


def short_name(name: str) -> str:
    """Returns the contract's name of a timeframe in any spelling. Raises `InvalidTimeframe` if there is none."""
    return name_of(timeframe(name), TIMEFRAMES)


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
    default: Exact | str | bool
    min: NotRequired[Exact]
    max: NotRequired[Exact]
    choices: NotRequired[list[str]]


class CatalogueEntryShape(TypedDict):
    """One entry of the catalogue; the last three fields with name or detail only."""

    name: str
    aliases: list[str]
    description: str
    parameters: list[
        Annotated[str, Field(description="name: type = default")]
        | Annotated[ParameterShape, Field(description="with name or detail")]
    ]
    is_overlay: NotRequired[bool]
    signals: NotRequired[list[str]]
    needs: NotRequired[list[str]]


class CatalogueResponse(TypedDict):
    """The catalogue, or one entry of it."""

    indicators: list[CatalogueEntryShape]
    total: Annotated[int, Field(description="indicators in the catalogue")]


class LastValue(TypedDict):
    """The newest value of a line."""

    index: int
    label: str
    last_value: Exact | None
    previous_value: Annotated[Exact | None, Field(description="at the bar before")]
    close_vs_line_pct: NotRequired[
        Annotated[Exact, Field(description="the close above (+) or below (-) this line, in per cent of the line")]
    ]


class CrossShape(TypedDict):
    """The last cross of two lines."""

    direction: Annotated[Literal["up", "down"], Field(description="up: a went above b")]
    time: Annotated[str, Field(description="open of the first bar on the new side")]
    bars_ago: Annotated[int, Field(description="0: the newest bar")]


class CrossingShape(TypedDict):
    """Two lines, which is higher, and their last cross. A touch is no cross."""

    a: Annotated[str, Field(description="close, or a line such as SMA(50)")]
    b: str
    a_is: Annotated[Literal["above", "below", "equal"], Field(description="at the newest bar")]
    last_cross: CrossShape | None
    since: NotRequired[Annotated[str, Field(description="without a cross: the first bar looked at")]]


class ComparedShape(TypedDict):
    """The crossings of the lines."""

    crossings: NotRequired[list[CrossingShape]]
    crossings_note: NotRequired[Annotated[str, Field(description="averages that were not compared")]]


class SignalShape(TypedDict):
    """A signal, drawn as a dot."""

    x: Annotated[int, Field(description="the bar that confirms it")]
    time: str
    y: Exact
    label: str
    extreme_x: NotRequired[Annotated[int, Field(description="the earlier bar of the high or low")]]
    extreme_time: NotRequired[str]


class LevelShape(TypedDict):
    """A reference level."""

    x: NotRequired[Annotated[int, Field(description="the first bar of the session that it comes from")]]
    time: NotRequired[str]
    y: Exact
    label: str


class SegmentShape(TypedDict):
    """A line between two bars, such as a divergence, or a level of a session."""

    x1: int
    time1: str
    y1: Exact
    x2: int
    time2: str
    y2: Exact
    dashed: bool
    label: NotRequired[str]


class ValuesShape(TypedDict):
    """The last values of one indicator."""

    label: str
    is_overlay: bool
    y_range: NotRequired[list[Exact]]
    lines: NotRequired[list[LastValue]]
    histogram: NotRequired[list[LastValue]]
    signals: NotRequired[list[SignalShape]]
    signals_total: NotRequired[Annotated[int, Field(description="if only the newest are shown; format series has all")]]
    divlines: NotRequired[list[SegmentShape]]
    divlines_total: NotRequired[Annotated[int, Field(description="as signals_total")]]
    hlines: NotRequired[list[LevelShape]]
    note: NotRequired[Annotated[str, Field(description="why values are missing")]]


class Hours(TypedDict):
    """Whether extended hours are left out."""

    hours: NotRequired[Annotated[str, Field(description="regular: bars and values without extended hours")]]
    hours_note: NotRequired[Annotated[str, Field(description="what session regular left out or could not change")]]


class IndicatorsResponse(Stated, Hours, ComparedShape):
    """The last values of several indicators, by the names in the request."""

    symbol: str
    interval: str
    source: str
    bars: int
    time: Annotated[str, Field(description="of the newest bar, which the last values belong to: its open")]
    close: Annotated[Exact, Field(description="of the newest bar")]
    indicators: dict[str, ValuesShape]
