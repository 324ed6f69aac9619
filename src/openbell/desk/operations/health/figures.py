"""The figures in the stores and the hours of markets. Each store gets one bounded question at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from openbell.desk.events.checks import TIMEOUT, in_own_thread, see_error
from openbell.market.errors import OpenbellError
from openbell.market.instruments import Instrument
from openbell.market.sessions import Phase, forex_open, phase, stock_phase

if TYPE_CHECKING:
    from openbell.stores.port import BarStore
    from openbell.stores.records.records import Records
    from openbell.stores.records.snapshot import View
    from openbell.trading.halt import Halt

T = TypeVar("T")
COLLECTOR = "collector"


@dataclass(frozen=True, slots=True)
class RecordFigures:
    """What the records tell. None: not known."""

    leases: dict[str, str | None] = field(default_factory=dict)
    entries: int | None = None
    head: str | None = None
    waiting: int | None = None
    """Deliveries of webhooks that wait."""
    dead: int | None = None
    halted: Halt | None = None


@dataclass(frozen=True, slots=True)
class BarFigures:
    """What the store of bars tells. None: not known."""

    waiting: int | None = None
    """Bars that wait for the bar database."""
    collector: str | None = None
    """The holder of the lease."""


class Question(Generic[T]):
    """A question to a store. While its answer does not come in time, the last answer stays and nothing else is asked."""

    def __init__(self, ask: Callable[[], Coroutine[Any, Any, T]], answer: T) -> None:
        self._ask = ask
        self._task: asyncio.Task[T] | None = None
        self.answer = answer

    async def ask(self) -> None:
        """Ask, or wait for the answer that has not come yet, for 1.5 s at most."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._ask())
            self._task.add_done_callback(see_error)
        await asyncio.wait({self._task}, timeout=TIMEOUT)
        if self._task.done() and not self._task.cancelled():
            error = self._task.exception()
            if error is None:
                self.answer = self._task.result()
            elif not isinstance(error, OpenbellError):  # the checks report those
                raise error


async def record_figures(records: Records) -> RecordFigures:
    """Returns the figures in the records."""
    from openbell.desk.settings.open_records import ENGINE
    from openbell.stores.records import leases, switches, webhooks
    from openbell.stores.records.journal import head_of

    def read(view: View) -> RecordFigures:
        head, counts = head_of(view.connection), webhooks.counts(view)
        return RecordFigures(
            leases={name: leases.holder(view, name) for name in (ENGINE, "webhook sender")},
            entries=head.seq,
            head=head.hash,
            waiting=sum(count for (_, is_dead), count in counts.items() if not is_dead),
            dead=sum(count for (_, is_dead), count in counts.items() if is_dead),
            halted=switches.halted(view),
        )

    return await records.read(read, check_head=False)


async def bar_figures(store: BarStore) -> BarFigures:
    """Returns the figures in the home's store of bars."""
    waiting = getattr(store, "waiting", lambda: 0)

    def read() -> BarFigures:
        return BarFigures(waiting(), store.leases.holder(COLLECTOR))

    return await in_own_thread(read)


def market_phases(now: float) -> dict[str, str]:
    """Returns the phase of each market."""
    return {"stocks": str(stock_phase(now)), "forex": "open" if forex_open(now) else "closed", "crypto": "open"}


def is_open(instrument: Instrument, now: float) -> bool:
    """Returns True in the regular hours of an instrument's market."""
    return phase(instrument, now) is Phase.REGULAR
