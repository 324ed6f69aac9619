"""The checks of `openbell doctor` that concern stored bars, and what `--mend` does to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from openbell.cli.findings import IMPORT, Finding
from openbell.desk.desk import Desk
from openbell.market.clock import iso
from openbell.market.counting import counted
from openbell.market.errors import StoreError
from openbell.market.timeframes import SHORT
from openbell.stores.buffer_schema import OLD_DAYS

if TYPE_CHECKING:
    from openbell.stores.port import Premature, Problem

_MEND = "openbell doctor --mend"


def check_bars(desk: Desk) -> Iterator[Finding]:
    """Check that the store can be read, that nothing was lost, and that nothing was stored too early."""
    folder = desk.settings.bar_folder
    if not folder.exists() and not desk.settings.influx_url:
        yield Finding(
            "note",
            f"no bars in {folder} yet",
            "openbell up" if desk.settings.simulated else IMPORT,
        )
        return
    where = desk.store.where().removesuffix(" (read only)")
    stored = desk.store.stored()
    symbols = len({series.instrument for series in stored})
    by_timeframe = Counter(series.timeframe for series in stored)
    series = ", ".join(f"{count} at {name}" for name, each in SHORT.items() if (count := by_timeframe[each]))
    try:
        size = f"{desk.store.size() / 1e6:.1f} MB"
    except StoreError as error:  # a database may tell it to administrators only
        size = f"of unknown size ({error.message})"
    yield Finding("ok", f"{counted(symbols, 'symbol')} ({series or 'no bars'}), {size} in {where}")
    for problem in desk.store.problems():
        yield _problem(problem)
    for found in desk.store.premature():
        yield Finding("bad", _describe(found), _MEND)
    yield from _losses(desk)


def mend_bars(desk: Desk) -> Iterator[Finding]:
    """Remove coverage of bars that had not closed and of bars that were lost, so that they are fetched again."""
    if not desk.settings.bar_folder.exists():
        return
    store = desk.store
    for found in store.mend():
        yield Finding("ok", f"mended: {_describe(found)}; it will be fetched again when needed")
    if store.mend_made():
        yield Finding("ok", "mended: bars that are made of minutes were lost; they are made again when needed")
    uncounted = store.uncounted()
    for series in store.to_check():
        for loss in store.mend_losses(series):
            yield Finding("ok", f"mended: {store.name} {loss.described()}")
    if uncounted:
        yield Finding("ok", f"counted the bars of {counted(uncounted, 'period')} that an earlier version wrote")


def _losses(desk: Desk) -> Iterator[Finding]:
    store = desk.store
    for series in store.to_check():
        for loss in store.losses(series):
            yield Finding("bad", f"{store.name} {loss.described()}", _MEND)
    for loss in store.lost_for_good():
        yield Finding("bad", f"{store.name} {loss.described()}", IMPORT)
    if store.lacks_made():
        yield Finding("bad", "bars that are made of minutes were lost: the database is older than this home", _MEND)
    if uncounted := store.uncounted():
        text = (
            f"the bars of {counted(uncounted, 'period')} were written by an earlier version and are not counted yet: if "
            "some were lost before, that cannot be noticed"
        )
        yield Finding("note", text, f"openbell up counts them, or {_MEND}")


def _problem(problem: Problem) -> Finding:
    if problem.reason.startswith(("is gone", "has lost")):
        return Finding("note", f"{iso(int(problem.at))}: {problem.path} {problem.reason}")
    again = IMPORT if OLD_DAYS in problem.reason else "import the file again"
    return Finding(
        "note",
        f"set aside {problem.path}: {problem.reason}",
        f"fetched again if the feed has it; otherwise {again}",
    )


def _describe(found: Premature) -> str:
    early = found.span.end > found.written
    return (
        f"{found.series} from {iso(found.span.start)} to {iso(found.span.end)} was recorded as complete at "
        f"{iso(int(found.written))}, "
        + ("before it had ended" if early else "later than the machine's time now: its clock was or is wrong")
    )
