"""How a process that serves ends: on Ctrl-C, SIGTERM and SIGHUP alike, and within 5 s whatever it does.

Requests in progress get 3 s to finish. What was acknowledged is durable, and what was not, is refused or unknown to its
caller however the process ends. The event loop may be blocked, a store may not answer, and a thread may compute: so another
thread notices the signal and ends the process in time. If even that one cannot run, because code in C does not let
go of the interpreter, the kernel ends the process by SIGALRM.
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

from openbell.desk.events.checks import Checks

if TYPE_CHECKING:
    from openbell.desk.desk import Desk

LONGEST = 4.3
"""Seconds from the signal to the end."""
_LAST_WORK = 0.3
"""Seconds for what is done at a forced end: it may wait for a lock that nobody gives back."""
_KERNEL = 4.7
"""Seconds from the signal until the kernel ends the process."""

_last: list[Callable[[], object]] = []


def at_forced_end(work: Callable[[], object]) -> None:
    """Call a function before the process ends without waiting for a store. It must not use the store."""
    _last.append(work)


def on_stop(stop: Callable[[], object]) -> None:
    """Call `stop` in the running event loop when the process is told to end."""
    loop = asyncio.get_running_loop()
    for number in _signals():
        loop.add_signal_handler(number, stop)


def on_stop_of(desk: Desk, stop: Callable[[], object]) -> None:
    """The same for a desk, whose process ends within 5 s even if the event loop is blocked or a store does not answer."""
    loop = asyncio.get_running_loop()
    begun: list[asyncio.Task[None]] = []
    failing: list[str] = []

    async def look_and_stop() -> None:
        try:
            failing.extend(desk.health.checks.outages if desk.has_made("health") else ())
            if not failing:
                failing.extend(await Checks(desk.checks_in_use()).failing())
        finally:
            stop()

    def told() -> None:
        if begun:
            stop()
        else:
            begun.append(loop.create_task(look_and_stop()))

    on_stop(told)
    _end_in_time(failing)


def _end_in_time(failing: list[str]) -> None:
    """From now on, a signal that ends the process does so in time. `failing` are the stores that do not answer then."""
    watched = list(_signals())
    for number in watched:  # runs in the main thread, also inside of a regular expression
        signal.signal(number, lambda *_: signal.setitimer(signal.ITIMER_REAL, _KERNEL))
        signal.siginterrupt(number, False)
    source, sink = os.pipe()
    os.set_blocking(sink, False)
    loops = signal.set_wakeup_fd(sink, warn_on_full_buffer=False)

    def follow() -> None:
        armed = False
        while numbers := os.read(source, 64):
            if not armed and not set(watched).isdisjoint(numbers):
                armed = True
                signal.setitimer(signal.ITIMER_REAL, _KERNEL)
                _end_by(time.monotonic() + LONGEST, failing)
            with suppress(OSError):  # the loop has ended
                os.write(loops, numbers)

    threading.Thread(target=follow, name="signals", daemon=True).start()


def _end_by(deadline: float, failing: list[str]) -> None:
    """End the process at a monotonic time, unless it has ended by itself."""

    def last_work() -> None:
        names = " and ".join(failing) or "work in progress"
        with suppress(OSError, ValueError):
            typer.echo(f"stopped without waiting for {names}; everything acknowledged is stored", err=True)
        for work in (*_last, logging.shutdown, sys.stdout.flush):
            with suppress(Exception):
                work()

    def end() -> None:
        worker = threading.Thread(target=last_work, daemon=True)
        worker.start()
        worker.join(_LAST_WORK)
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
