"""How a process that serves ends: on Ctrl-C, SIGTERM and SIGHUP alike, and within 5 s if a store does not answer.

Requests in progress may take 20 s to finish. That does not help while the store that they wait for is out: what was
acknowledged is durable, and what was not, is refused or unknown to its caller however the process ends.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import typer

from openbell.desk.readiness import Checks, checks_in_use

if TYPE_CHECKING:
    from openbell.desk.desk import Desk

LONGEST = 4.5
"""Seconds from the signal to the end, if a store does not answer."""


_last: list[Callable[[], object]] = []


def at_forced_end(work: Callable[[], object]) -> None:
    """Call a function before the process ends without waiting for a store. It must not use the store."""
    _last.append(work)


def on_stop(stop: Callable[[], object]) -> None:
    """Call `stop` in the running event loop when the process is told to end."""
    loop = asyncio.get_running_loop()
    for number in _signals():
        with suppress(NotImplementedError):  # Windows
            loop.add_signal_handler(number, stop)


def on_stop_of(desk: Desk, stop: Callable[[], object]) -> None:
    """The same for a desk: if a store of it does not answer at that time, the process ends after 4.5 s at the latest."""
    loop = asyncio.get_running_loop()
    begun: list[asyncio.Task[None]] = []

    async def look_and_stop(deadline: float) -> None:
        try:
            failing = list(desk.health.checks.outages) if "health" in desk.__dict__ else []
            failing = failing or await Checks(checks_in_use(desk)).failing()
            if failing:
                _end_by(deadline, failing)
        finally:
            stop()

    def told() -> None:
        if begun:
            stop()
        else:
            begun.append(loop.create_task(look_and_stop(time.monotonic() + LONGEST)))

    on_stop(told)


def _end_by(deadline: float, failing: list[str]) -> None:
    """End the process at a monotonic time, unless it has ended by itself."""

    def end() -> None:
        text = f"stopped without waiting for {' and '.join(failing)}; everything acknowledged is stored"
        with suppress(OSError, ValueError):
            typer.echo(text, err=True)
        for work in (*_last, logging.shutdown, sys.stdout.flush):
            with suppress(Exception):
                work()
        os._exit(0)

    timer = threading.Timer(deadline - time.monotonic(), end)
    timer.daemon = True
    timer.start()


def _signals() -> Iterator[signal.Signals]:
    """Yields the signals that end a process. `nohup` ignores SIGHUP, and so it stays ignored."""
    yield signal.SIGINT
    yield signal.SIGTERM
    hang_up = getattr(signal, "SIGHUP", None)
    if hang_up is not None and signal.getsignal(hang_up) is not signal.SIG_IGN:
        yield hang_up
