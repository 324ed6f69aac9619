"""The instruments that have stored bars: the default watchlist of feeds that only read the store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import TYPE_CHECKING

from openbell.market.errors import StoreError
from openbell.market.instruments import Instrument
from openbell.stores.fair_queue import own_context
from openbell.stores.threads import Threads

if TYPE_CHECKING:
    from openbell.stores.port import BarStore


class StoredInstruments:
    """Reads them anew when the store has changed."""

    def __init__(self, store: Callable[[], BarStore], threads: Threads, *, is_remote: bool) -> None:
        """`is_remote` is True for a database, which is asked over the network."""
        self._store = store
        self._threads = threads
        self._is_remote = is_remote
        self._known: tuple[Instrument, ...] = ()
        self._state: Hashable = None
        """The state of the store that they were read at; None before the first time."""
        self._reading: asyncio.Task[None] | None = None

    def read(self) -> tuple[Instrument, ...]:
        """Returns the instruments that have stored bars; those known before while the store fails.

        On the event loop, those known before are also returned while a thread asks a database.
        """
        with suppress(StoreError):
            state = self._store().versions.of_store()
            if state != self._state:
                if self._is_remote and self._state is not None and _in_event_loop():
                    self._read_soon(state)
                else:
                    self._read(state)
        return self._known

    def _read(self, state: Hashable) -> None:
        self._known = tuple(sorted({series.instrument for series in self._store().stored()}))
        self._state = state

    def _read_soon(self, state: Hashable) -> None:
        async def read() -> None:
            with suppress(StoreError):
                await self._threads.run(self._read, state)

        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(read(), name="stored instruments", context=own_context())


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
