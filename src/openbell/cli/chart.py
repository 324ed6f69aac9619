"""`openbell chart SYMBOL` and `openbell indicators`."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from openbell.charts.choices import STYLES
from openbell.cli.app import AsOf, InScenario, app, plain_errors, result_of, settings_for
from openbell.cli.terminal import PICTURES, check_output, write_output
from openbell.market.errors import InvalidParameter
from openbell.market.nearest import check_one_of
from openbell.market.sessions import SESSIONS

if TYPE_CHECKING:
    from datetime import tzinfo

    from openbell.charts.look import Look
    from openbell.desk.settings import Settings


AxisZone = Annotated[
    str | None,
    typer.Option(
        help=(
            "Time zone of the axis, such as Asia/Tokyo (default: New York or UTC). Bars of 1d and longer keep the market's "
            "dates."
        )
    ),
]


@app.command("chart")
def chart(
    symbol: Annotated[str, typer.Argument(help="AAPL, BTC/USD, …")],
    timeframe: Annotated[
        str,
        typer.Option(
            "-t", "--timeframe", help="1m 3m 5m 15m 30m 1h 2h 4h 6h 12h 1d 1w (default here: 1h, in the tools: 4h)."
        ),
    ] = "1h",
    indicator: Annotated[
        list[str] | None,
        typer.Option(
            "-i",
            "--indicator",
            help="An indicator: rsi, or rsi:length=21,color=#ff9800,width=2. Repeatable; see openbell indicators.",
        ),
    ] = None,
    bars: Annotated[int, typer.Option("-n", "--bars", min=1, max=1000, help="Number of bars.")] = 200,
    output: Annotated[Path, typer.Option("-o", "--output", help="Output file (.png, .jpg or .svg).")] = Path(
        "chart.png"
    ),
    size: Annotated[str, typer.Option(help="Width and height in pixels.")] = "1200x675",
    scale: Annotated[float, typer.Option(help="Device pixels per pixel; 2 for high-resolution screens.")] = 1.0,
    style: Annotated[str, typer.Option(help=f"One of: {' '.join(STYLES)}.")] = "candles",
    theme: Annotated[str, typer.Option(help="One of: dark light.")] = "dark",
    price_scale: Annotated[str, typer.Option(help="One of: linear log percent indexed.")] = "linear",
    session: Annotated[
        str, typer.Option(help="One of: extended regular. The last leaves out the extended hours of stocks.")
    ] = "extended",
    fills: Annotated[
        bool, typer.Option("--fills", help="Show your fills, average price, stops, targets, orders and alerts.")
    ] = False,
    timezone: AxisZone = None,
    as_of: AsOf = None,
    scenario: InScenario = None,
) -> None:
    """Write a chart to a file.

    Example: openbell chart BTC/USD -t 4h -i bbands -i rsi:length=21 -o btc.png
    """
    settings = settings_for(as_of, scenario_name=scenario)
    with plain_errors():
        check_output(output, PICTURES)
        check_one_of("--session", session, SESSIONS)
        from openbell.charts.look import Look
        from openbell.charts.time_axis import zone_called

        width, height = _size(size)
        look = Look(width, height, scale, style, theme, price_scale)
        zone = None if timezone is None else zone_called(timezone)
        wanted = _Wanted(symbol, timeframe, indicator or [], bars, session, fills, zone)
        data, drawn = result_of(_draw(settings, wanted, look, output.suffix.lower()))
    if drawn < bars:
        typer.echo(f"openbell: only {drawn} of {bars} bars are available", err=True)
    with plain_errors():
        write_output(output, data)
    typer.echo(f"{output}: {len(data):,} bytes")


def _size(text: str) -> tuple[int, int]:
    sides = re.fullmatch(r"([0-9]{1,6})[xX]([0-9]{1,6})", text)
    if not sides:
        raise InvalidParameter(f"--size must be like 1200x675, not {text!r}")
    return int(sides[1]), int(sides[2])


def entry(text: str) -> dict[str, object]:
    """Parse an indicator of the command line, such as rsi:length=21,std_dev=2."""
    name, _, rest = text.partition(":")
    settings: dict[str, object] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = (each.strip() for each in part.partition("="))
        if not equals:
            raise InvalidParameter(f"{text!r}: write an indicator as rsi or rsi:length=21")
        if key in settings or key == "name":
            raise InvalidParameter(f"{text!r} sets {key} twice")
        settings[key] = _value(value)
    return {"name": name.strip(), **settings}


def _value(text: str) -> object:
    if text in {"true", "false"}:
        return text == "true"
    if re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        return int(text)
    # float() would also accept 1_4 and non-ASCII digits.
    return float(text) if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text) else text


class _Wanted(NamedTuple):
    """What a chart shows."""

    symbol: str
    timeframe: str
    indicators: list[str]
    bars: int
    session: str
    fills: bool
    zone: tzinfo | None


async def _draw(settings: Settings, asked: _Wanted, look: Look, ending: str) -> tuple[bytes, int]:
    """Returns the encoded picture and the number of bars in it."""
    from openbell.charts.styles import parse_styled
    from openbell.charts.time_axis import unused_zone_note
    from openbell.desk.desk import Desk
    from openbell.desk.pictures.charts import title_of
    from openbell.desk.settings.principals import OPERATOR
    from openbell.servers.chartgen import shapes

    span = shapes.timeframe(asked.timeframe)
    wanted, plots = parse_styled([entry(text) for text in asked.indicators])
    async with Desk(settings) as desk:
        instrument = await desk.bars.find(asked.symbol)
        shown = await desk.indicators.evaluate(instrument, span, asked.bars, wanted, asked.session)
        badge = "SIMULATED" if desk.data == "simulated" else ""
        overlay = await desk.trading.overlays.of(OPERATOR, shown.bars) if asked.fills else None
        title = title_of(shown, shapes.short_name(asked.timeframe))
        picture = await desk.charts.draw(
            shown, look, title, badge, PICTURES[ending], plots, overlay=overlay, zone=asked.zone
        )
    notes = [f"{each.request.label}: {each.note}" for each in shown.indicators if each.note]
    notes += [note for note in (shown.note, unused_zone_note(shown.bars, asked.zone)) if note]
    notes += overlay.remarks if overlay else []
    for note in notes:
        typer.echo(f"openbell: {note}", err=True)
    return picture, len(shown.bars)


@app.command("indicators")
def indicators() -> None:
    """List every indicator with its parameters."""
    from openbell.indicators.registry import all_indicators

    wide = shutil.get_terminal_size().columns
    for each in all_indicators().values():
        where = "on the price" if each.overlay else "in a panel"
        typer.echo(f"{', '.join((each.name, *each.aliases))} ({where})")
        settings = " ".join(f"{parameter.name}={_shown(parameter.default)}" for parameter in each.parameters)
        for text in filter(None, (each.description, settings)):
            # Names are never split, because they are copied from here.
            typer.echo(
                fill(
                    text,
                    wide,
                    initial_indent="    ",
                    subsequent_indent="    ",
                    break_long_words=False,
                    break_on_hyphens=False,
                )
            )


def _shown(value: object) -> str:
    """Returns a parameter's value in the form that `-i` accepts."""
    return str(value).lower() if isinstance(value, bool) else str(value)
