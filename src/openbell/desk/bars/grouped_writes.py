"""Grouped writes: small parts that are ready at the same time are stored in one durable transaction."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from openbell.market.bars import Bars
from openbell.market.errors import OpenbellError
from openbell.market.provenance import Source
from openbell.stores.fair_queue import own_context
from openbell.stores.port import BarStore, Span
from openbell.stores.threads import Threads

SMALL = 500
"""The most bars of a part that is grouped; a larger one is written alone."""


@dataclass(frozen=True, slots=True)
class _Key:
    """What the parts of a group have in common."""

    source: Source
    covers: Span | None


@dataclass(slots=True)
class _Group:
    task: asyncio.Task[None]
    parts: list[Bars] = field(default_factory=list)


class GroupedWrites:
    """Writes bars of many instruments to a store."""

    def __init__(self, store: BarStore, threads: Threads) -> None:
        self._store = store
        self._threads = threads
        self._groups: dict[_Key, _Group] = {}

    async def write(self, bars: Bars, source: Source, covers: Span | None) -> None:
        """Returns when the bars are durable. Raises as `BarStore.write` does, for reasons of these bars alone.

        A caller that is cancelled leaves its bars to be written.
        """
        key = _Key(source, covers)
        if len(bars) > SMALL:
            await self._write([bars], key)
            return
        group = self._groups.get(key)
        if group is None:
            # Its first step comes after those of all tasks that are ready now: they add their parts before.
            task = asyncio.create_task(self._write_group(key), context=own_context())
            task.add_done_callback(_look)
            group = self._groups[key] = _Group(task)
        group.parts.append(bars)
        try:
            await asyncio.shield(group.task)
        except OpenbellError:
            if len(group.parts) == 1:
                raise
            await self._write([bars], key)

    async def _write_group(self, key: _Key) -> None:
        await self._write(self._groups.pop(key).parts, key)

    async def _write(self, parts: list[Bars], key: _Key) -> None:
        await self._threads.run(self._store.write, parts, key.source, covers=key.covers)


def _look(done: asyncio.Task[None]) -> None:
    """Retrieve a failure whose callers have all left, so that it is not reported as lost."""
    if not done.cancelled():
        done.exception()
