"""What `openbell import` prints: one line for each series, however many files it came from, and each note once."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import typer

from openbell.market.clock import iso
from openbell.market.errors import OpenbellError
from openbell.market.foreign_text import without_invisible
from openbell.market.plural import counted
from openbell.market.timeframes import SHORT, name_of

if TYPE_CHECKING:
    from openbell.desk.importing import FileSeries
    from openbell.desk.settings import Settings
    from openbell.market.instruments import Instrument
    from openbell.market.provenance import Adjustment
    from openbell.market.series import Series

_NAMED = 10


@dataclass(slots=True)
class _Stored:
    """The bars of one series that a command has stored."""

    bars: int = 0
    first: int = 2**62
    last: int = 0
    files: dict[str, None] = field(default_factory=dict)
    formats: dict[str, None] = field(default_factory=dict)


@dataclass(slots=True)
class ImportReport:
    """What a command has stored so far."""

    place: str
    stored: dict[tuple[Series, Adjustment], _Stored] = field(default_factory=dict)
    notes: dict[str, dict[str, None]] = field(default_factory=dict)
    """The files of each note."""
    before: dict[Series, int | None] = field(default_factory=dict)
    """The time of the latest bar of each series that was stored before the command."""
    first: dict[Series, int] = field(default_factory=dict)

    def add(self, found: Sequence[FileSeries], newest: Sequence[int | None]) -> None:
        """Add the series of one file, and the latest bar that was stored of each before it."""
        for series, latest in zip(found, newest, strict=True):
            key, times = series.bars.series, series.bars.time
            part = self.stored.setdefault((key, series.adjustment), _Stored())
            part.bars += len(times)
            part.first, part.last = min(part.first, int(times[0])), max(part.last, int(times[-1]))
            part.files[series.file] = part.formats[series.format] = None
            self.before.setdefault(key, latest)
            self.first[key] = min(self.first.get(key, part.first), part.first)
        for note in notes_of(found):
            self.notes.setdefault(note, {})[found[0].file] = None

    def show(self, settings: Settings) -> None:
        """Print what was stored, and on standard error what to know about it."""
        for (series, adjustment), part in self.stored.items():
            from_files = f", from {len(part.files):,} files" if len(part.files) > 1 else ""
            typer.echo(
                f"imported {described(series, part.bars, part.first, part.last)}{from_files}, into {self.place} "
                f"({', '.join(part.formats)}, {adjustment})"
            )
        late: dict[Instrument, float] = {}
        for series, latest in self.before.items():
            if latest is not None and self.first[series] <= latest:
                late[series.instrument] = max(latest, late.get(series.instrument, latest))
        if late:
            _note_late_bars(settings, late)
        for note, files in self.notes.items():
            first, more = next(iter(files)), len(files) - 1
            which = f"{first} and {counted(more, 'more file')}" if more else first
            typer.echo(without_invisible(f"openbell: {which}: {note}"), err=True)


def described(series: Series, count: int, first: int, last: int) -> str:
    """Returns the number of bars of a series and their time in words."""
    length = name_of(series.timeframe, SHORT)
    return f"{counted(count, 'bar')} of {series.instrument}, {length}, {iso(first)} to {iso(last)}"


def notes_of(found: Sequence[FileSeries]) -> list[str]:
    """Returns the notes on a file; one that does not hold for all of its series names theirs."""
    symbols: dict[str, list[str]] = {}
    for series in found:
        for note in series.notes:
            symbols.setdefault(note, []).append(str(series.bars.instrument))
    return [
        note
        if len(names) == len(found)
        else f"{', '.join(names[:_NAMED])}{' …' if len(names) > _NAMED else ''}: {note}"
        for note, names in symbols.items()
    ]


def _note_late_bars(settings: Settings, newest: dict[Instrument, float]) -> None:
    """Print which orders and alerts the bars up to the `newest` of each instrument may no longer reach."""
    from openbell.desk.desk import Desk
    from openbell.desk.orders.late_bars import Waiting, waiting_for_bars

    async def count() -> dict[Instrument, Waiting]:
        # Read-only: an import creates no records.
        async with Desk(dataclasses.replace(settings, read_only=True, as_of="", scenario="")) as desk:
            return await waiting_for_bars(desk.trading.records, newest)

    try:
        found = asyncio.run(count())
    except OpenbellError as error:
        names = ", ".join(map(str, [*newest][:_NAMED])) + (" …" if len(newest) > _NAMED else "")
        typer.echo(f"openbell: working orders and alerts on {names} cannot be read: {error.message}", err=True)
        return
    for instrument, waiting in found.items():
        if str(waiting):
            typer.echo(
                f"openbell: {waiting} on {instrument} may already be past these bars: "
                f"bars up to {iso(newest[instrument])} that were stored late fill no order and fire no alert",
                err=True,
            )
