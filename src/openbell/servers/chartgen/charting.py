"""generate_chart, list_indicators and get_indicators."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from json import dumps as _json
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import Field

from openbell.charts.choices import (
    LARGEST,
    LEAST_SCALE,
    MOST_PIXELS,
    MOST_SCALE,
    SCALES,
    SMALLEST,
    STYLES,
    THEME_NAMES,
)
from openbell.indicators.registry import MAX_INDICATORS
from openbell.market.clock import iso
from openbell.market.errors import DataError, InvalidParameter, InvalidSymbol, Refused, StoreError, UnknownSymbol
from openbell.market.nearest import check_one_of
from openbell.market.provenance import BarFacts
from openbell.market.sessions import EXTENDED, SESSIONS
from openbell.protocol.call import Basis, Call, Result, on_bars
from openbell.protocol.dialects import Media, MediaPicture
from openbell.protocol.result_fields import stated
from openbell.protocol.tool import Arguments, Reads, Tool, require_allowed
from openbell.servers.chartgen import alerts, orders, shapes

if TYPE_CHECKING:
    from openbell.charts.account.overlay import AccountOverlay
    from openbell.desk.pictures.indicators import Evaluation
    from openbell.indicators.spec import Indicator

Symbol = Annotated[str | None, Field(description="BTCUSDT, BTC/USD, AAPL")]
Indicators = Annotated[
    list[shapes.IndicatorEntry],
    Field(description='names, or objects with overrides: {"name": "rsi", "length": 21}', max_length=MAX_INDICATORS),
]
Side = Annotated[
    int,
    Field(ge=SMALLEST, le=LARGEST, description=f"pixels; width × height × scale² is at most {MOST_PIXELS:,}"),
]
Timezone = Annotated[
    str | None,
    Field(
        description=(
            "time zone of the axis, such as Asia/Tokyo; default New York for stocks, else UTC; bars of 1d and longer keep "
            "the market's dates"
        )
    ),
]


DrawnIndicators = Annotated[
    list[shapes.IndicatorEntry],
    Field(
        description=(
            'names, or objects with overrides and, for pictures, color and line width: {"name": "rsi", "length": 21, '
            '"color": "#ff9800", "width": 2}'
        ),
        max_length=MAX_INDICATORS,
    ),
]


class ChartInput(Arguments):
    """Input of generate_chart."""

    ticker: Symbol = None
    symbol: Symbol = None
    timeframe: shapes.TimeframeName = None
    interval: shapes.TimeframeName = None
    indicators: DrawnIndicators = Field(default=[])
    bars: Annotated[int, Field(ge=1, le=1000)] = shapes.DEFAULT_BARS
    width: Side = 1200
    height: Side = 675
    format: Annotated[str, shapes.choice(shapes.FORMATS)] = "png"
    style: Annotated[str, shapes.choice(STYLES)] = "candles"
    theme: Annotated[str, shapes.choice(THEME_NAMES)] = "dark"
    price_scale: Annotated[str, shapes.choice(SCALES)] = "linear"
    scale: Annotated[float, Field(ge=LEAST_SCALE, le=MOST_SCALE, description="device pixels per pixel")] = 1.0
    session: shapes.SessionName = EXTENDED
    trades: Annotated[bool, Field(description="show your fills, average price, stops, targets, orders and alerts")] = (
        False
    )
    timezone: Timezone = None


class IndicatorsInput(Arguments):
    """Input of get_indicators."""

    symbol: str
    indicators: Indicators
    interval: shapes.TimeframeName = None
    session: shapes.SessionName = EXTENDED


class CatalogueInput(Arguments):
    """Input of list_indicators."""

    name: Annotated[str | None, Field(max_length=80, description="this one alone, with all fields")] = None
    detail: Annotated[bool, Field(description="all fields of all of them: about 11,000 tokens instead of 6,000")] = (
        False
    )


async def generate_chart(call: Call, given: ChartInput) -> Result[Media | dict[str, Any]]:
    """Return a picture, its numbers, or both."""
    from openbell.charts.look import Look
    from openbell.charts.payload import series, summary
    from openbell.charts.styles import parse_styled
    from openbell.charts.time_axis import unused_zone_note, zone_called
    from openbell.desk.pictures.charts import title_of

    check_one_of("format", given.format, shapes.FORMATS)
    check_one_of("session", given.session, SESSIONS)
    symbol = _either("symbol", given.symbol, given.ticker)
    if symbol is None:
        raise InvalidParameter("symbol is required")
    names = [None if name is None else shapes.short_name(name) for name in (given.timeframe, given.interval)]
    interval = _either("timeframe", *names) or shapes.DEFAULT_TIMEFRAME
    wanted, plots = parse_styled(shapes.entries(given.indicators))
    look = Look(given.width, given.height, given.scale, given.style, given.theme, given.price_scale)
    zone = None if given.timezone is None else zone_called(given.timezone)
    instrument = await call.desk.bars.find(symbol)
    timeframe = shapes.TIMEFRAMES[interval]
    chart = await call.desk.indicators.evaluate(instrument, timeframe, given.bars, wanted, given.session)
    overlay = await _overlay(call, chart) if given.trades else None
    drawn = given.format in {"png", "both"}
    basis = await _basis(call, chart, overlay, unused_zone_note(chart.bars, zone) if drawn else None)
    more: dict[str, Any] = {**stated(call, instrument, basis.sources), **_hours(chart)}
    if overlay is not None:
        more["trades"] = overlay.payload()
    native = BarFacts(basis.made_of, basis.sources).are_native(timeframe)
    if given.format == "series":
        values = await call.desk.threads.run(series, symbol, interval, chart.bars, chart.indicators, native=native)
        return Result(values | more, basis)
    numbers = None
    if given.format != "png":
        work = partial(summary, symbol, interval, chart.bars, chart.indicators, chart.whole, native=native)
        numbers = await call.desk.threads.run(work) | more
    if given.format == "summary":
        return Result(cast("dict[str, Any]", numbers), basis)
    badge = "SIMULATED" if call.desk.data == "simulated" else ""
    title = title_of(chart, interval)
    picture = await call.desk.charts.draw(chart, look, title, badge, plots=plots, overlay=overlay, zone=zone)
    return Result(Media((MediaPicture("image/png", picture),), numbers), basis)


def _either(name: str, one: str | None, two: str | None) -> str | None:
    """Returns the value of an argument with two names. Raises `InvalidParameter` if both are given and differ."""
    if one is not None and two is not None and one != two:
        raise InvalidParameter(f"{name} is given twice, as {one!r} and {two!r}")
    return one if one is not None else two


async def _overlay(call: Call, chart: Evaluation) -> AccountOverlay:
    """Returns what the chart shows of the caller's account, as far as its own tools would return it.

    Fills and the position need the scope `read`, as portfolio's tools do; orders and alerts need what get_orders and
    list_alerts need.
    """
    refused = None
    try:
        for tool in (*orders.TOOLS, *alerts.TOOLS):
            if tool.name in {"get_orders", "list_alerts"}:
                require_allowed(tool, call.desk.settings, None, call.session.principal)
    except Refused as error:
        refused = error.message
    return await call.desk.trading.overlays.of(call.principal, chart.bars, refused=refused)


def _hours(chart: Evaluation) -> shapes.Hours:
    """Returns the fields that say whether extended hours are left out; none if that was not asked."""
    found: shapes.Hours = {}
    if chart.hours:
        found["hours"] = chart.hours
    if chart.note:
        found["hours_note"] = chart.note
    return found


async def _basis(
    call: Call, chart: Evaluation, overlay: AccountOverlay | None = None, zone_note: str | None = None
) -> Basis:
    from openbell.market.bars import closed_at

    facts = await call.desk.facts(chart.bars, from_minutes=chart.from_minutes)
    notes = [f"{each.request.key}: {each.note}" for each in chart.indicators if each.note]
    notes += [note for note in (chart.note, overlay.notice if overlay else None, zone_note) if note]
    basis = on_bars(chart.bars.instrument, closed_at(chart.bars), facts, "; ".join(notes) or None)
    return basis if overlay is None else replace(basis, account=overlay.account)


_KINDS = {bool: "boolean", str: "string", int: "integer", float: "number"}


async def list_indicators(_call: Call, given: CatalogueInput) -> Result[shapes.CatalogueResponse]:
    """Return the catalogue of indicators."""
    from openbell.indicators.registry import all_indicators, get

    every = list(all_indicators().values())
    wanted = every if given.name is None else [get(given.name)]
    row = _entry if given.detail or given.name is not None else _short_entry
    return Result({"indicators": [row(each) for each in wanted], "total": len(every)})


def _short_entry(indicator: Indicator) -> shapes.CatalogueEntryShape:
    """Returns an entry of the whole catalogue, which has to stay within 6,000 tokens."""
    return {
        "name": indicator.name,
        "aliases": list(indicator.aliases),
        "description": indicator.brief or indicator.description,
        "parameters": [
            f"{each.name}: {_KINDS[type(each.default)]} = {_json(each.default)}" for each in indicator.parameters
        ],
    }


def _entry(indicator: Indicator) -> shapes.CatalogueEntryShape:
    entry: shapes.CatalogueEntryShape = {
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
    return entry


def _parameter(parameter: Any) -> shapes.ParameterShape:
    shape: shapes.ParameterShape = {
        "name": parameter.name,
        "type": _KINDS[type(parameter.default)],
        "default": parameter.default,
    }
    if parameter.choices:
        shape["choices"] = list(parameter.choices)
    elif not isinstance(parameter.default, bool):
        shape["min"], shape["max"] = parameter.low, parameter.high
    return shape


async def get_indicators(call: Call, given: IndicatorsInput) -> Result[shapes.IndicatorsResponse]:
    """Return the newest values of indicators."""
    from openbell.charts.comparisons import crossing_fields
    from openbell.charts.payload import last_values
    from openbell.indicators.evaluation import parse_requests

    interval = shapes.short_name(shapes.DEFAULT_TIMEFRAME if given.interval is None else given.interval)
    check_one_of("session", given.session, SESSIONS)
    wanted = parse_requests(shapes.entries(given.indicators))
    if not wanted:
        raise InvalidParameter("indicators must name at least one")
    instrument = await call.desk.bars.find(given.symbol)
    fetches = call.desk.bars.history.fetches[instrument]
    timeframe, count = shapes.TIMEFRAMES[interval], shapes.DEFAULT_BARS
    chart = await call.desk.indicators.evaluate(instrument, timeframe, count, wanted, given.session)
    asked_feed = call.desk.bars.history.fetches[instrument] > fetches
    basis = await _basis(call, chart)

    def compute() -> tuple[dict[str, shapes.ValuesShape], shapes.ComparedShape]:
        newest = {each.request.key: last_values(each, chart.bars) for each in chart.indicators}
        crossings = crossing_fields(chart.whole, len(chart.bars), chart.indicators)
        return cast("dict[str, shapes.ValuesShape]", newest), cast("shapes.ComparedShape", crossings)

    values, crossed = await call.desk.threads.run(compute)
    shown: shapes.IndicatorsResponse = {
        "symbol": given.symbol,
        "interval": interval,
        "source": "engine_cache" if call.desk.settings.trade and not asked_feed else "fetched",
        "bars": len(chart.bars),
        "time": iso(int(chart.bars.time[-1])),
        "close": float(chart.bars.close[-1]),
        "indicators": values,
        **crossed,
        **stated(call, instrument, basis.sources),
        **_hours(chart),
    }
    return Result(shown, basis)


_ERRORS = (InvalidSymbol, UnknownSymbol, InvalidParameter, DataError, StoreError)
TOOLS = (
    Tool(
        "generate_chart",
        "Chart of the newest closed bars with indicators: png (default), summary (compact JSON), both, series (every bar). "
        f"At most 1,000 bars and {MAX_INDICATORS} indicators.",
        ChartInput,
        None,
        generate_chart,
        toolset="charts",
        reads=Reads.BARS,
        errors=_ERRORS,
    ),
    Tool(
        "list_indicators",
        "The full catalogue of indicators: aliases, a short description and typed parameters with defaults. With name: "
        "one in full, with ranges, choices and signals.",
        CatalogueInput,
        shapes.CatalogueResponse,
        list_indicators,
        toolset="charts",
        reads=Reads.NOTHING,
        errors=(InvalidParameter,),
    ),
    Tool(
        "get_indicators",
        f"Last values, signals and levels of at most {MAX_INDICATORS} indicators, without a picture, and when lines last "
        "crossed: close and averages (golden cross), MACD and its signal.",
        IndicatorsInput,
        shapes.IndicatorsResponse,
        get_indicators,
        toolset="charts",
        reads=Reads.BARS,
        errors=_ERRORS,
    ),
)
