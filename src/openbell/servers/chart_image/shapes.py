"""The inputs and results of the chart-image contract."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field, WithJsonSchema
from typing_extensions import TypedDict

from openbell.charts.config.choices import FORMATS, PLANS, THEMES
from openbell.protocol.numbers import Exact
from openbell.protocol.result_fields import Foreign, From
from openbell.protocol.tool import Absent, Arguments, without_default

SECTIONS = ("indicators", "parameters", "exchanges", "all")
_ABSENT = Field(json_schema_extra=without_default)


def _choice(names: tuple[str, ...], text: str | None = None) -> Any:
    """Returns a field whose schema lists the names; the handler refuses others and suggests the closest."""
    return Field(json_schema_extra={"enum": list(names)}, description=text)


_TEXT = {"type": "string"}
_VALUES = {
    "type": "object",
    "additionalProperties": {"anyOf": [{"type": name} for name in ("number", "string", "boolean")]},
}
_STUDY = {"type": "object", "properties": {"name": _TEXT, "inputs": _VALUES}, "required": ["name"]}
_DRAWING = {
    "type": "object",
    "properties": {"type": _TEXT, "coordinates": _VALUES},
    "required": ["type", "coordinates"],
}
_CONFIG = {
    "type": "object",
    "description": "as construct_chart_config returns it; also the vendor's v2 form",
    "properties": {
        **dict.fromkeys(("symbol", "interval", "range", "theme", "style"), _TEXT),
        **{name: {"type": "integer"} for name in ("width", "height")},
        "studies": {"type": "array", "items": _STUDY},
        "drawings": {"type": "array", "items": _DRAWING},
    },
}
AnyConfig = Annotated[dict[str, Any], WithJsonSchema(_CONFIG)]
"""A config as a client sends it. Wrong fields are the answer of validate_chart_config, and no error of arguments."""


class DocumentationInput(Arguments):
    """Input of fetch_chart_documentation."""

    section: Annotated[str, _choice(SECTIONS)] = "all"
    forceRefresh: Annotated[bool, Field(description="fetch again instead of using the copy of the last 24 h")] = False  # noqa: N815
    full: Annotated[bool, Field(description="every study and exchange")] = False


class SymbolsInput(Arguments):
    """Input of get_symbols."""

    exchange: Annotated[str, Field(max_length=40, description="id, such as BINANCE")]
    search: Annotated[Annotated[str, Field(max_length=100)] | Absent, _ABSENT] = None
    limit: Annotated[int, Field(ge=1, le=1000)] = 50


class Preferences(Arguments):
    """Wishes that take precedence over the sentence."""

    theme: Annotated[Annotated[str, _choice(THEMES)] | Absent, _ABSENT] = None
    resolution: Annotated[str | Absent, Field(json_schema_extra=without_default, description="such as 1920x1080")] = (
        None
    )
    interval: Annotated[str | Absent, _ABSENT] = None
    range: Annotated[str | Absent, _ABSENT] = None


class ConstructInput(Arguments):
    """Input of construct_chart_config."""

    naturalLanguage: Annotated[str, Field(description="such as: AAPL daily with 50 and 200 day MA, dark")]  # noqa: N815
    symbol: Annotated[
        str | Absent, Field(json_schema_extra=without_default, description="instead of the sentence's")
    ] = None
    exchange: Annotated[Annotated[str, Field(max_length=40)] | Absent, _ABSENT] = None
    preferences: Annotated[Preferences | Absent, _ABSENT] = None


class ValidateInput(Arguments):
    """Input of validate_chart_config."""

    config: AnyConfig
    planLevel: Annotated[Annotated[str, _choice(tuple(PLANS))] | Absent, _ABSENT] = None  # noqa: N815


class GenerateInput(Arguments):
    """Input of generate_chart_image."""

    config: AnyConfig
    storage: Annotated[bool, Field(description="store the picture and return its URL")] = False
    format: Annotated[Annotated[str, _choice(FORMATS)] | Absent, _ABSENT] = None


# Results

Value = Exact | str | bool


class StudyShape(TypedDict):
    """One study of a config."""

    name: str
    inputs: NotRequired[dict[str, Value]]
    override: NotRequired[dict[str, Value]]


class DrawingShape(TypedDict):
    """One drawing of a config."""

    type: str
    coordinates: dict[str, Value]
    style: NotRequired[dict[str, Value]]


class ConfigShape(TypedDict):
    """A chart config."""

    symbol: str
    interval: NotRequired[str]
    range: NotRequired[str]
    theme: NotRequired[str]
    style: NotRequired[str]
    width: NotRequired[int]
    height: NotRequired[int]
    scale: NotRequired[str]
    session: NotRequired[str]
    studies: NotRequired[list[StudyShape]]
    drawings: NotRequired[list[DrawingShape]]


class InputShape(TypedDict):
    """One input of a study."""

    type: str
    default: Value
    description: str
    min: NotRequired[Exact]
    max: NotRequired[Exact]


class DrawnStudyShape(TypedDict):
    """One study."""

    name: str
    displayName: str
    category: str
    inputs: dict[str, InputShape]


class ParametersShape(TypedDict):
    """The allowed values of a config's fields."""

    intervals: list[str]
    ranges: list[str]
    themes: list[str]
    styles: list[str]
    scales: NotRequired[list[str]]
    sessions: NotRequired[list[str]]
    drawings: NotRequired[
        Annotated[list[str], Field(description="types with their coordinates, optional ones in brackets")]
    ]


class LimitsShape(TypedDict):
    """The limits of a plan."""

    requestsPerSecond: Exact
    dailyMax: int
    maxResolution: str
    maxStudies: int


class ExampleShape(TypedDict):
    """An example of a config."""

    description: str
    config: ConfigShape


class ExchangeShape(TypedDict):
    """One exchange."""

    id: str
    name: str
    type: str
    description: str


class DataShape(TypedDict):
    """The documentation, or a section of it."""

    indicators: NotRequired[list[DrawnStudyShape]]
    chartParameters: NotRequired[ParametersShape]
    rateLimits: NotRequired[dict[str, LimitsShape]]
    examples: NotRequired[list[ExampleShape]]
    exchanges: NotRequired[list[ExchangeShape]]


class LeftOut(TypedDict):
    """What the short form leaves out."""

    indicators: NotRequired[Annotated[int, Field(description="studies that are not listed")]]
    indicatorNames: NotRequired[Annotated[str, Field(description="their names, without @tv-basicstudies")]]
    exchanges: NotRequired[Annotated[int, Field(description="exchanges that are not listed")]]


class DocumentationShape(Foreign, TypedDict):
    """Result of fetch_chart_documentation."""

    success: bool
    data: DataShape
    cachedAt: str
    source: Annotated[str, Field(description="vendor, cache (a copy of the vendor's) or package")]
    leftOut: NotRequired[Annotated[LeftOut, Field(description="without full: what long lists do not show")]]
    note: NotRequired[str]


class ExchangesShape(Foreign, TypedDict):
    """Result of get_exchanges."""

    success: bool
    exchanges: Annotated[list[ExchangeShape], From("items")]
    count: int
    source: str
    note: NotRequired[str]


class SymbolShape(TypedDict):
    """One symbol of an exchange."""

    symbol: str
    fullSymbol: Annotated[str, From("full_symbol")]
    description: str
    type: str


class SymbolsShape(Foreign, TypedDict):
    """Result of get_symbols."""

    success: bool
    exchange: str
    symbols: Annotated[list[SymbolShape], From("listing.items")]
    count: int
    total: int
    has_more: bool
    source: Annotated[str, From("listing.source")]
    note: NotRequired[str]


class ConstructionShape(TypedDict):
    """Result of construct_chart_config."""

    success: bool
    config: ConfigShape
    reasoning: str
    warnings: list[str]


class ProblemShape(TypedDict):
    """One problem of a config."""

    field: str
    message: str
    severity: Literal["error", "warning"]


class RateLimitShape(TypedDict):
    """A config against the limits of a plan."""

    withinLimits: Annotated[bool, From("within_limits")]
    studyCount: Annotated[int, From("studies")]
    maxStudies: Annotated[int, From("plan.parameters")]
    resolution: str
    maxResolution: Annotated[str, From("plan.resolution")]


class ValidationShape(TypedDict):
    """Result of validate_chart_config."""

    valid: bool
    errors: Annotated[list[ProblemShape], From("problems")]
    suggestions: list[str]
    rateLimitCheck: RateLimitShape


class MetadataShape(TypedDict):
    """How a picture was drawn."""

    format: str
    resolution: str
    generatedAt: str
    expiresAt: NotRequired[str]
    engine: Annotated[str, Field(description="openbell or chart-img.com")]
    data_source: NotRequired[str]
    session: NotRequired[str]
    as_of: NotRequired[str]
    note: NotRequired[str]


class ResponseShape(TypedDict):
    """The response of the engine."""

    statusCode: Annotated[int, From("status")]
    rateLimitRemaining: NotRequired[Annotated[int, From("remaining")]]


class ImageShape(TypedDict):
    """Result of generate_chart_image."""

    success: bool
    imageUrl: NotRequired[str]
    imageData: NotRequired[Annotated[str, Field(description="Base64")]]
    metadata: MetadataShape
    apiResponse: ResponseShape
