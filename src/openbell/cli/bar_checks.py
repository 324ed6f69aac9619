"""The checks of `openbell doctor` that concern stored bars, and what `--mend` does to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from openbell.cli.findings import IMPORT, Finding
from openbell.desk.desk import Desk
from openbell.market.clock import iso
from openbell.market.errors import StoreError
from openbell.market.plural import counted
from openbell.market.timeframes import SHORT

if TYPE_CHECKING:
    from openbell.market.series import Series
    from openbell.stores.port import FileProblem, Premature, Span

_MEND = "openbell doctor --mend"


def check_bars(desk: Desk) -> Iterator[Finding]:
    """Check that the store can be read, that nothing was lost, and that nothing was stored too early."""
    folder = desk.settings.bar_folder
    if not desk.settings.store_backend.has_bars:
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
    counts = ", ".join(f"{count} at {name}" for name, each in SHORT.items() if (count := by_timeframe[each]))
    try:
        size = f"{desk.store.size() / 1e6:.1f} MB"
    except StoreError as error:  # a database may tell it to administrators only
        size = f"of unknown size ({error.message})"
    yield Finding("ok", f"{counted(symbols, 'symbol')} ({counts or 'no bars'}), {size} in {where}")
    for problem in desk.store.audit.problems():
        yield _problem(problem)
    for found in desk.store.audit.premature():
        yield Finding("bad", _describe(found), _MEND)
    yield from _losses(desk)
    from openbell.desk.importing.storing import uncovered_imports

    for series, spans in uncovered_imports(desk.store):
        yield Finding("bad", _describe_uncovered(series, spans), _MEND)


def mend_bars(desk: Desk) -> Iterator[Finding]:
    """Remove coverage of bars that had not closed and of bars that were lost, so that they are fetched again.

    Imported bars that are stored and not covered are covered, so that they are read.
    """
    if not desk.settings.bar_folder.exists():
        return
    store = desk.store
    for found in store.audit.mend():
        yield Finding("ok", f"mended: {_describe(found)}; it will be fetched again when needed")
    if store.audit.mend_made():
        yield Finding("ok", "mended: bars that are made of minutes were lost; they are made again when needed")
    for series in store.audit.to_check():
        for loss in store.audit.mend_losses(series):
            yield Finding("ok", f"mended: {store.name} {loss.described()}")
    from openbell.desk.importing.storing import cover_imports, uncovered_imports

    for series, spans in uncovered_imports(store):
        cover_imports(store, series, spans)
        yield Finding("ok", f"mended: {_describe_uncovered(series, spans)}; they are read from now on")


def _losses(desk: Desk) -> Iterator[Finding]:
    store = desk.store
    for series in store.audit.to_check():
        for loss in store.audit.losses(series):
            yield Finding("bad", f"{store.name} {loss.described()}", _MEND)
    for loss in store.audit.lost_for_good():
        yield Finding("bad", f"{store.name} {loss.described()}", IMPORT)
    if store.audit.lacks_made():
        yield Finding("bad", "bars that are made of minutes were lost: the database is older than this home", _MEND)


def _problem(problem: FileProblem) -> Finding:
    if problem.reason.startswith(("is gone", "has lost")):
        return Finding("note", f"{iso(int(problem.at))}: {problem.path} {problem.reason}")
    return Finding(
        "note",
        f"set aside {problem.path}: {problem.reason}",
        "fetched again if the feed has it; otherwise import the file again",
    )


def _describe_uncovered(series: Series, spans: Sequence[Span]) -> str:
    first, last = iso(spans[0].start)[:10], iso(spans[-1].end)[:10]
    return f"imported bars of {series} between {first} and {last} are stored, but left out when bars are read"


def _describe(found: Premature) -> str:
    early = found.span.end > found.written
    return (
        f"{found.series} from {iso(found.span.start)} to {iso(found.span.end)} was recorded as complete at "
        f"{iso(int(found.written))}, "
        + ("before it had ended" if early else "later than the machine's time now: its clock was or is wrong")
    )
