"""A progress bar on standard error, if that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(label: str, total: float, unit: str = "", least: float = 0) -> Iterator[Callable[[float], None]]:
    """Show a bar until the block ends; the function that it yields adds to what is done.

    `unit` is what is counted: bytes have their own form, without a unit only the share is shown. No bar is shown for less
    than `least`.
    """
    if total < least or not sys.stderr.isatty():
        yield lambda _done: None
        return
    from rich import progress as bar
    from rich.console import Console

    from openbell.cli.terminal import raw

    count = {"": bar.TaskProgressColumn, "bytes": bar.DownloadColumn}.get(unit, bar.MofNCompleteColumn)()
    columns = (bar.TextColumn(f"{label} {unit}".rstrip()), bar.BarColumn(), count, bar.TimeRemainingColumn())
    with bar.Progress(*columns, console=Console(file=raw(sys.stderr)), transient=True) as shown:
        task = shown.add_task("", total=total)
        yield lambda done: shown.advance(task, done)
