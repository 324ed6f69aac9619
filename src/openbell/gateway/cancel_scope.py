"""Interrupts the code of a `with` block: for requests, which need it seldom and must not pay much for it."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self


class Interruption:
    """A block that a call of the object ends early. Costs a fifth of `asyncio.timeout` and of anyio's `CancelScope`.

    A call cancels the task of the block, which must be waiting then. A cancellation by others is passed on.
    """

    __slots__ = ("_cancellations", "_requested", "_task", "happened")

    def __init__(self) -> None:
        self.happened = False
        """True if the block was interrupted and has ended because of that."""
        self._requested = False
        self._task: asyncio.Task[object] | None = None

    def __enter__(self) -> Self:
        self._task = asyncio.current_task()
        self._cancellations = 0 if self._task is None else self._task.cancelling()
        return self

    def __call__(self) -> None:
        """Interrupt the block, if it has not ended and is not interrupted."""
        if self._task is not None and not self._requested:
            self._requested = True
            self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> bool:
        task, self._task = self._task, None
        if self._requested and task is not None and task.uncancel() <= self._cancellations:
            self.happened = kind is asyncio.CancelledError
        return self.happened
