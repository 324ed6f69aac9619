"""`openbell chart SYMBOL` and `openbell indicators`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openbell.cli.app import AsOf, app, fail, said_plainly, settings_for
from openbell.market.errors import InvalidParameter

if TYPE_CHECKING:
    from openbell.charts.request import Look
    from openbell.desk.settings import Settings

_ENDINGS = (".png", ".jpg", ".jpeg", ".svg")


@app.command("chart")
def chart(
    symbol: Annotated[str, typer.Argument(help="AAPL, BTC/USD, …")],
    timeframe: Annotated[str, typer.Option("-t", "--timeframe", help="1m 3m 5m 15m 30m 1h 2h 4h 6h 12h 1d 1w")] = "1h",
    indicator: Annotated[
        list[str] | None,
        typer.Option(
            "-i", "--indicator", help="An indicator, once for each: rsi, or rsi:length=21,… (see indicators)."
        ),
    ] = None,
    bars: Annotated[int, typer.Option("-n", "--bars", min=1, max=1000, help="How many bars.")] = 200,
    output: Annotated[Path, typer.Option("-o", "--output", help="Where to: .png, .jpg or .svg.")] = Path("chart.png"),
    size: Annotated[str, typer.Option(help="Width and height in pixels.")] = "1200x675",
    scale: Annotated[float, typer.Option(help="Device pixels per pixel; 2 for sharp screens.")] = 1.0,
    style: Annotated[str, typer.Option(help="candles hollow bars line area heikin_ashi baseline")] = "candles",
    theme: Annotated[str, typer.Option(help="dark light")] = "dark",
    price_scale: Annotated[str, typer.Option(help="linear log percent")] = "linear",
    as_of: AsOf = None,
) -> None:
    """Draw a chart into a file.

    Example: openbell chart BTC/USD -t 4h -i bbands -i rsi:length=21 -o btc.png
    """
    if output.suffix.lower() not in _ENDINGS:
        fail(f"{output} must end in {', '.join(_ENDINGS)}")
    settings = settings_for(as_of)
    with said_plainly():
        from openbell.charts.request import Look

        width, height = _size(size)
        look = Look(width, height, scale, style, theme, price_scale)
        data = asyncio.run(_draw(settings, symbol, timeframe, indicator or [], bars, look, output.suffix.lower()))
    try:
        output.write_bytes(data)
    except OSError as error:
        fail(f"cannot write {output}: {error.strerror}")
    typer.echo(f"{output}: {len(data):,} bytes")


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.lower().partition("x")
    if not (width.isdigit() and height.isdigit()):
        raise InvalidParameter(f"--size must be like 1200x675, not {text!r}")
    return int(width), int(height)


def entry(text: str) -> dict[str, object]:
    """An indicator as the shell writes it: rsi:length=21,std_dev=2."""
    name, _, rest = text.partition(":")
    found: dict[str, object] = {"name": name}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if not equals:
            raise InvalidParameter(f"{text!r}: write an indicator as rsi or rsi:length=21")
        found[key.strip()] = _value(value.strip())
    return found


def _value(text: str) -> object:
    if text in {"true", "false"}:
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


async def _draw(
    settings: Settings, symbol: str, timeframe: str, indicators: list[str], count: int, look: Look, ending: str
) -> bytes:
    from openbell.charts.compose import compose
    from openbell.charts.encode import jpeg, png
    from openbell.charts.raster import render
    from openbell.charts.request import wanted_indicators
    from openbell.charts.svg import svg
    from openbell.desk.desk import Desk
    from openbell.market.timeframes import named
    from openbell.servers.chartgen.shapes import TIMEFRAMES

    span = named(timeframe, TIMEFRAMES)
    wanted = wanted_indicators([entry(text) for text in indicators])
    desk = Desk(settings)
    try:
        instrument = await desk.charts.find(symbol)
        drawn = await desk.charts.chart(instrument, span, count, wanted)
    finally:
        await desk.close()
    mark = "SIMULATED" if desk.data == "simulated" else ""
    scene = compose(drawn.bars, drawn.indicators, look, f"{instrument} · {timeframe}", mark)
    if ending == ".svg":
        return svg(scene).encode()
    pixels = render(scene, look.scale)
    return png(pixels) if ending == ".png" else jpeg(pixels)


@app.command("indicators")
def indicators() -> None:
    """List every indicator with its parameters."""
    from rich.console import Console
    from rich.table import Table

    from openbell.indicators.registry import all_indicators

    table = Table("name", "aliases", "where", "parameters", "what it is")
    for each in all_indicators().values():
        shown = " ".join(f"{parameter.name}={parameter.default}" for parameter in each.parameters)
        where = "price" if each.overlay else "panel"
        table.add_row(each.name, " ".join(each.aliases), where, shown, each.description)
    Console().print(table)
