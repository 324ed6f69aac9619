"""generate_chart, list_indicators and get_indicators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import Field

from openbell.charts.choices import LARGEST, LEAST_SCALE, MOST_SCALE, SCALES, SMALLEST, STYLES, THEME_NAMES
from openbell.indicators.bounds import MAX_INDICATORS
from openbell.market.errors import DataError, InvalidParameter, InvalidSymbol, StoreError, UnknownSymbol
from openbell.market.nearest import check_one_of
from openbell.protocol.call import Basis, Call, Result, on_bars
from openbell.protocol.media import Media, Picture
from openbell.protocol.tool import Arguments, NoArguments, Reads, Tool
from openbell.protocol.truth import data_source
from openbell.servers.chartgen import shapes

if TYPE_CHECKING:
    from openbell.desk.indicators import Evaluation

Symbol = Annotated[str | None, Field(description="BTCUSDT, BTC/USD, AAPL")]
Indicators = Annotated[
    list[shapes.IndicatorEntry],
    Field(description='names, or objects with overrides: {"name": "rsi", "length": 21}', max_length=MAX_INDICATORS),
]
Side = Annotated[int, Field(ge=SMALLEST, le=LARGEST)]


class ChartInput(Arguments):
    """Input of generate_chart."""

    ticker: Symbol = None
    symbol: Symbol = None
    timeframe: shapes.TimeframeName = None
    interval: shapes.TimeframeName = None
    indicators: Indicators = Field(default=[])
    bars: Annotated[int, Field(ge=1, le=1000)] = shapes.DEFAULT_BARS
    width: Side = 1200
    height: Side = 675
    format: Annotated[str, shapes.choice(shapes.FORMATS)] = "png"
    style: Annotated[str, shapes.choice(STYLES)] = "candles"
    theme: Annotated[str, shapes.choice(THEME_NAMES)] = "dark"
    price_scale: Annotated[str, shapes.choice(SCALES)] = "linear"
    scale: Annotated[float, Field(ge=LEAST_SCALE, le=MOST_SCALE, description="device pixels per pixel")] = 1.0


class IndicatorsInput(Arguments):
    """Input of get_indicators."""

    symbol: str
    indicators: Indicators
    interval: shapes.TimeframeName = None


async def generate_chart(call: Call, given: ChartInput) -> Result[Media | dict[str, Any]]:
    """Return a picture, its numbers, or both."""
    from openbell.charts.look import Look
    from openbell.charts.payload import series, summary
    from openbell.indicators.evaluation import parse_requests

    check_one_of("format", given.format, shapes.FORMATS)
    symbol = _either("symbol", given.symbol, given.ticker)
    if symbol is None:
        raise InvalidParameter("symbol is required")
    names = [None if name is None else shapes.short_name(name) for name in (given.timeframe, given.interval)]
    interval = _either("timeframe", *names) or shapes.DEFAULT_TIMEFRAME
    wanted = parse_requests(shapes.entries(given.indicators))
    look = Look(given.width, given.height, given.scale, given.style, given.theme, given.price_scale)
    instrument = await call.desk.bars.find(symbol)
    chart = await call.desk.indicators.evaluate(instrument, shapes.TIMEFRAMES[interval], given.bars, wanted)
    basis = await _basis(call, chart)
    source = {"data_source": data_source(call.desk, instrument, basis.sources)}
    if given.format == "series":
        return Result(series(symbol, interval, chart.bars, chart.indicators) | source, basis)
    numbers = summary(symbol, interval, chart.bars, chart.indicators) | source if given.format != "png" else None
    if given.format == "summary":
        return Result(cast("dict[str, Any]", numbers), basis)
    badge = "SIMULATED" if call.desk.data == "simulated" else ""
    picture = await call.desk.charts.draw(chart, look, f"{instrument} · {interval}", badge)
    return Result(Media((Picture("image/png", picture),), numbers), basis)


def _either(name: str, one: str | None, two: str | None) -> str | None:
    """Returns the value of an argument with two names. Raises `InvalidParameter` if both are given and differ."""
    if one is not None and two is not None and one != two:
        raise InvalidParameter(f"{name} is given twice, as {one!r} and {two!r}")
    return one if one is not None else two


async def _basis(call: Call, chart: Evaluation) -> Basis:
    from openbell.market.bars import closed_at

    facts = await call.desk.facts(chart.bars)
    note = next((f"{each.request.key}: {each.note}" for each in chart.indicators if each.note), None)
    return on_bars(chart.bars.instrument, closed_at(chart.bars), facts, note)


async def list_indicators(_call: Call, _given: NoArguments) -> Result[shapes.CatalogueResponse]:
    """Return the catalogue of indicators."""
    from openbell.indicators.registry import all_indicators

    found: list[shapes.IndicatorShape] = []
    for indicator in all_indicators().values():
        entry: shapes.IndicatorShape = {
            "name": indicator.name,
            "aliases": list(indicator.aliases),
            "description": indicator.description,
            "is_overlay": indicator.overlay,
            "parameters": [_parameter(each) for each in indicator.parameters],
        }
        if indicator.labels:
            entry["signals"] = list(indicator.labels)
        if indicator.needs:
            entry["needs"] = list(indicator.needs)
        found.append(entry)
    return Result({"indicators": found})


def _parameter(parameter: Any) -> shapes.ParameterShape:
    kinds = {bool: "boolean", str: "string", int: "integer", float: "number"}
    shape: shapes.ParameterShape = {
        "name": parameter.name,
        "type": kinds[type(parameter.default)],
        "default": parameter.default,
    }
    if parameter.choices:
        shape["choices"] = list(parameter.choices)
    elif not isinstance(parameter.default, bool):
        shape["min"], shape["max"] = parameter.low, parameter.high
    return shape


async def get_indicators(call: Call, given: IndicatorsInput) -> Result[shapes.IndicatorsResponse]:
    """Return the newest values of indicators."""
    from openbell.charts.payload import last_values
    from openbell.indicators.evaluation import parse_requests

    interval = shapes.short_name(shapes.DEFAULT_TIMEFRAME if given.interval is None else given.interval)
    wanted = parse_requests(shapes.entries(given.indicators))
    if not wanted:
        raise InvalidParameter("indicators must name at least one")
    instrument = await call.desk.bars.find(given.symbol)
    fetches = call.desk.bars.history.fetches[instrument]
    chart = await call.desk.indicators.evaluate(instrument, shapes.TIMEFRAMES[interval], shapes.DEFAULT_BARS, wanted)
    asked_feed = call.desk.bars.history.fetches[instrument] > fetches
    basis = await _basis(call, chart)
    shown: shapes.IndicatorsResponse = {
        "symbol": given.symbol,
        "interval": interval,
        "source": "engine_cache" if call.desk.settings.trade and not asked_feed else "fetched",
        "bars": len(chart.bars),
        "indicators": {each.request.key: cast("shapes.ValuesShape", last_values(each)) for each in chart.indicators},
        "data_source": data_source(call.desk, instrument, basis.sources),
    }
    return Result(shown, basis)


_ERRORS = (InvalidSymbol, UnknownSymbol, InvalidParameter, DataError, StoreError)
TOOLS = (
    Tool(
        "generate_chart",
        "Chart of the newest closed bars with indicators: png (default), summary (compact JSON), both, series (every bar).",
        ChartInput,
        None,
        generate_chart,
        toolset="charts",
        reads=Reads.BARS,
        errors=_ERRORS,
    ),
    Tool(
        "list_indicators",
        "Every indicator with its aliases, parameters and signals.",
        NoArguments,
        shapes.CatalogueResponse,
        list_indicators,
        toolset="charts",
        reads=Reads.NOTHING,
    ),
    Tool(
        "get_indicators",
        "Last values, signals and levels of indicators, without a picture.",
        IndicatorsInput,
        shapes.IndicatorsResponse,
        get_indicators,
        toolset="charts",
        reads=Reads.BARS,
        errors=_ERRORS,
    ),
)
