"""`openbell export SYMBOL`: write bars to a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openbell.cli.app import AsOf, Until, app, fail, moment, plain_errors, result_of, settings_for
from openbell.desk.settings.private_files import as_user_wants
from openbell.market.clock import iso
from openbell.market.errors import InvalidParameter, NoData
from openbell.market.timeframes import SHORT, parse_timeframe

if TYPE_CHECKING:
    from openbell.market.bars import Bars
    from openbell.market.provenance import BarFacts

HEADER = "timestamp,open,high,low,close,volume"


@app.command("export")
def export(
    symbol: Annotated[str, typer.Argument(metavar="SYMBOL", help="The symbol: AAPL, BTC/USD, EUR/USD.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write (.csv or .parquet).")],
    timeframe: Annotated[str, typer.Option("--timeframe", "-t", help="The timeframe: 1m to 1w.")] = "1d",
    since: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="The first time; by default the first stored bar."),
    ] = None,
    until: Until = None,
    as_of: AsOf = None,
) -> None:
    """Write closed bars to a file, as openbell import reads them.

    With --from, bars that the store lacks are fetched from the feed first.

    \b
    Example:
      openbell export AAPL -t 1h --from 2026-01 -o aapl.csv
    """  # noqa: D301 (click reads the backspace)
    settings = settings_for(as_of)
    with plain_errors():
        wanted = parse_timeframe(timeframe, SHORT)
        if out.suffix.lower() not in {".csv", ".parquet"}:
            raise InvalidParameter(f"{out}: the name must end in .csv or .parquet")

        async def read() -> Exported:
            from openbell.desk.desk import Desk
            from openbell.market.instruments import parse
            from openbell.market.series import Series
            from openbell.market.trading_days import begin_of_date

            async with Desk(settings) as desk:
                series = Series(parse(symbol), wanted)
                first, last = (
                    begin_of_date(series.instrument, wanted, moment(text, option)) if text else None
                    for text, option in ((since, "--from"), (until, "--to"))
                )
                bars = await desk.bars.span(series, first, last)
                return Exported(bars, desk.data, _adjustments(bars, await desk.facts(bars)))

        exported = result_of(read())
        bars = exported.bars
        if not len(bars):
            raise NoData(f"no closed {timeframe} bars of {symbol} in that time", symbol=symbol)
        try:
            _write(exported, out)
        except OSError as error:
            fail(f"cannot write {out}: {error.strerror or error}")
    kind = "simulated bars" if exported.data == "simulated" else "bars"
    typer.echo(f"{len(bars):,} {kind} of {bars.series}, {iso(bars.time[0])} to {iso(bars.time[-1])}, in {out}")
    _note_adjustment(exported.adjustments, out)


@dataclass(frozen=True, slots=True)
class Exported:
    """Bars for a file, and what is recorded of them."""

    bars: Bars
    data: str
    """The kind of data: simulated, imported, replay or live."""
    adjustments: list[str]
    """What the prices are adjusted for, of `market.provenance.Adjustment`; several only if months of minutes differ."""


def _adjustments(bars: Bars, facts: BarFacts) -> list[str]:
    from openbell.market.provenance import adjustment_of

    return sorted({adjustment_of(bars.instrument, source) for source in facts.sources})


def _note_adjustment(adjustments: list[str], out: Path) -> None:
    """Print what `openbell import` cannot find out from the file about its prices."""
    if len(adjustments) > 1:
        typer.echo(
            f"openbell: parts of the prices are adjusted in different ways ({', '.join(adjustments)}), which the file does "
            "not record: export them one by one with --from and --to",
            err=True,
        )
    elif adjustments not in ([], ["raw"]) and out.suffix.lower() == ".csv":
        typer.echo(
            f"openbell: the prices are adjusted ({adjustments[0]}), which a CSV file does not record: import it with "
            f"--adjustment {adjustments[0]}",
            err=True,
        )


def _write(exported: Exported, out: Path) -> None:
    """Write a file under another name first, so that an interrupted command leaves no half of one."""
    beside = out.with_name(f".{out.name}.part")
    try:
        with as_user_wants():
            (_write_csv if out.suffix.lower() == ".csv" else _write_parquet)(exported, beside)
        beside.replace(out)
    finally:
        beside.unlink(missing_ok=True)


def _write_csv(exported: Exported, path: Path) -> None:
    import numpy as np

    from openbell.desk.importing import SIMULATED

    bars = exported.bars
    times = np.datetime_as_string(bars.time.astype("datetime64[s]")).tolist()
    columns = (column.tolist() for column in bars.columns()[1:])
    with path.open("w", encoding="utf-8", newline="\n") as file:
        if exported.data == "simulated":
            file.write(f"{SIMULATED} by Openbell, not real prices\n")
        file.write(f"{HEADER}\n")
        file.writelines(
            f"{time}Z,{','.join(map(repr, values))}\n" for time, *values in zip(times, *columns, strict=True)
        )


def _write_parquet(exported: Exported, path: Path) -> None:
    from openbell.desk.importing.arrow_tables import ADJUSTMENT, ORIGIN
    from openbell.stores.parquet.arrow import pq, table_of

    meta = {ORIGIN: exported.data.encode()}
    if len(exported.adjustments) == 1:
        meta[ADJUSTMENT] = exported.adjustments[0].encode()
    pq.write_table(table_of(exported.bars, meta), path, compression="zstd")
