"""A service, which is a named set of tools, and the runner of its calls, independent of the transport.

The runner caches results: keyed by every argument, bounded in age, number and size, with one computation at a time for each
key.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache, cached_property
from typing import Any, NamedTuple

from pydantic import ValidationError

from openbell.desk.bars.call_deadlines import call_within
from openbell.desk.bars.single_flight import SingleFlight
from openbell.desk.desk import Desk
from openbell.desk.settings import Settings
from openbell.market.errors import CallTimeout, InvalidParameter, InvalidSymbol, OpenbellError
from openbell.market.foreign_text import one_visible_line
from openbell.market.instruments import AssetClass, Instrument, parse
from openbell.market.nearest import did_you_mean
from openbell.protocol.argument_limits import SYMBOLS, bounded
from openbell.protocol.call import Basis, Call, Result, truth
from openbell.protocol.dialects import Dialect, Media, Reply, ResultMetrics
from openbell.protocol.json_text import finite_or_null, require_finite
from openbell.protocol.session import Scope, Session
from openbell.protocol.tool import Arguments, Effect, Reads, Tool, Toolsets, offers, require_allowed
from openbell.protocol.validation_messages import explain, faults_of, faulty_arguments
from openbell.stores.threads import CALLER

MOST_VALUES = 400_000
"""The size of all results that are kept: about 35 MB. A thousand candles have 7,000 values."""
_TEXT = 80
"""Characters of a text that take about as much memory as another value."""
_ROWS = 32
"""Rows of a list that are counted."""


class CachedResult(NamedTuple):
    """A value, whether it came from the cache, and for how many more seconds the cache keeps it."""

    value: Any
    cached: bool
    remaining: float | None


class _Entry(NamedTuple):
    until: float
    value: Any
    size: int


class TtlCache:
    """Ages are measured in monotonic system time, so that entries also expire while the market clock is fixed."""

    def __init__(
        self, most: int = 1024, most_values: int = MOST_VALUES, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = most
        self._most_values = most_values
        self._now = now
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._values = 0
        """The size of all entries."""
        self._flights = SingleFlight()
        self._drops = 0
        """Number of calls of `drop`. A value whose computation began before one is returned but not cached."""

    async def get(
        self,
        key: Hashable,
        ttl: float,
        work: Callable[[], Awaitable[Any]],
        *,
        refresh: bool = False,
        keeps: Callable[[Any], bool] = lambda _: True,
    ) -> CachedResult:
        """Returns the cached value, or the result of `work`, which is cached if `keeps` returns True for it.

        `refresh` ignores the cached value and replaces it.
        """
        if ttl <= 0:
            return CachedResult(await work(), cached=False, remaining=None)
        entry = self._entries.get(key)
        if entry and not refresh and entry.until > self._now():
            self._entries.move_to_end(key)
            return CachedResult(entry.value, cached=True, remaining=entry.until - self._now())
        drops = self._drops
        value = await self._flights.run((key, refresh, drops), work)
        if drops != self._drops or not keeps(value):
            return CachedResult(value, cached=False, remaining=None)
        self._remove(key)
        entry = self._entries[key] = _Entry(self._now() + ttl, value, size(value))
        self._values += entry.size
        while len(self._entries) > self._most or self._values > self._most_values:
            self._remove(next(iter(self._entries)))
        return CachedResult(value, cached=False, remaining=None)

    def drop(self, chosen: Callable[[Hashable], bool]) -> None:
        """Remove the entries for whose key `chosen` returns True, after a write changed what they hold."""
        self._drops += 1
        for key in [key for key in self._entries if chosen(key)]:
            self._remove(key)

    def _remove(self, key: Hashable) -> None:
        if (entry := self._entries.pop(key, None)) is not None:
            self._values -= entry.size


def size(value: Any) -> int:
    """Returns about how many values an object holds, also inside dataclasses; a long text counts as several.

    The rows of a long list are alike: a few of them are counted for all.
    """
    if isinstance(value, dict):
        return 1 + sum(map(size, value.values()))
    if isinstance(value, list | tuple):
        counted = value[:: len(value) // _ROWS + 1]
        return 1 + sum(map(size, counted)) * len(value) // max(1, len(counted))
    if isinstance(value, str | bytes):
        return 1 + len(value) // _TEXT
    if is_dataclass(value):
        return 1 + sum(size(getattr(value, each.name)) for each in fields(value))
    return 1


log = logging.getLogger(__name__)

_LONGEST_MESSAGE = 2_000
_REFRESH = {"force_refresh"}
"""The argument that is not part of a cache key."""


@dataclass(frozen=True)
class Service:
    """One contract's server: its identity, its tools and its dialect."""

    name: str
    """The server's name in the protocol."""
    title: str
    instructions: str
    tools: tuple[Tool, ...]
    dialect: Dialect
    opens_records: bool = False
    """Opens the connections to the records before the first call."""
    answers_early: bool = False
    """Its calls do not wait for what takes long, if the desk answers more than one."""
    searches: bool = False
    """Searches the watched series for strategies in the background."""
    pushes: Mapping[str, Scope] = field(default_factory=dict)
    """The methods of the notifications that it pushes over HTTP, with the scope that their receiver needs."""
    command: str = ""
    """SERVER in `openbell mcp SERVER`, if it differs from the name."""
    not_covered: Mapping[AssetClass, str] = field(default_factory=dict)
    """Classes of instruments that its tools refuse, and where they are covered: none of them is suggested."""
    remote: Callable[[Settings], str] | None = None
    """Returns the name of the service whose data the results show; empty if it is this desk's own data."""

    @cached_property
    def by_name(self) -> dict[str, Tool]:
        """The tools by name."""
        return {tool.name: tool for tool in self.tools}

    def begin(self, desk: Desk) -> None:
        """Start on a desk what the service declares; before the first call of a desk that answers many."""
        desk.answers_early = desk.answers_early or self.answers_early
        if self.opens_records:
            desk.record_connections.open()
        if self.searches:
            desk.strategies.start()

    def with_underscores(self) -> Service:
        """Returns the service with each tool that has dots in its name also under a name with underscores."""
        more = tuple(replace(tool, name=tool.name.replace(".", "_")) for tool in self.tools if "." in tool.name)
        return replace(self, tools=self.tools + more)

    def unknown(self, tool: str) -> str:
        """Returns the message for an unknown tool: it names the closest tool, or all of them."""
        known = did_you_mean(tool, self.by_name) or f"; there are {', '.join(self.by_name)}"
        return f"Unknown tool: {one_visible_line(tool[:80])}{known}"


class Runner:
    """Runs the calls of one service on one desk, for all sessions: checks access and arguments, caches results and
    converts errors into the contract's form.
    """

    def __init__(self, service: Service, desk: Desk, toolsets: Toolsets = None) -> None:
        self.service = service
        self.desk = desk
        self._toolsets = toolsets
        self._cache = TtlCache()

    @property
    def offered(self) -> list[Tool]:
        """The tools that the settings and toolsets allow."""
        return [tool for tool in self.service.tools if offers(tool, self.desk.settings, self._toolsets)]

    async def run(self, name: str, arguments: Mapping[str, Any], session: Session, request: Any = None) -> Reply:
        """Returns the reply to one call. Raises `KeyError` if the service has no tool of that name."""
        tool = self.service.by_name[name]
        call = Call(self.desk, session, request)
        checked: Arguments | None = None
        began = time.perf_counter()
        dialect = self.service.dialect
        CALLER.set(call.principal)
        try:
            require_allowed(tool, self.desk.settings, self._toolsets, session.principal)
            checked = _checked(tool.arguments, arguments)
            answer = await self._answer(tool, checked, call)
            result: Result[Any] = answer.value
            basis = result.basis
            metrics = ResultMetrics(
                _ms_since(began), answer.cached, answer.remaining, basis.source or self._source(tool)
            )
            reply = dialect.result(result.value, metrics)
            for work in result.afterwards:
                session.replies.hold(request, work)
        except OpenbellError as error:
            await self.desk.symbol_advice.add_to(error, self.service.not_covered)
            if len(error.message) > _LONGEST_MESSAGE:  # it repeats an argument
                error.message = error.message[:_LONGEST_MESSAGE] + "..."
            basis = self._declared(tool, checked)
            reply = dialect.error(error, ResultMetrics(_ms_since(began)), name)
            reply.payload = finite_or_null(reply.payload)
        except Exception:
            log.exception("%s failed", name)
            basis = self._declared(tool, checked)
            reply = dialect.bug(ResultMetrics(_ms_since(began)), name)
        reply.truth = truth(self.desk.settings, call.at, basis)
        if tool.note_of is not None and not reply.is_error:
            reply.note = tool.note_of(reply.truth)
        return reply

    def _declared(self, tool: Tool, checked: Arguments | None) -> Basis:
        """Returns the basis of every result of a tool with these arguments, errors included."""
        if name := self.service.remote(self.desk.settings) if self.service.remote else "":
            note = f"the data comes from {name}, not from this desk's feed"
            return Basis(stated={"note": note, "data": "remote", "feed": name})
        instrument = None if checked is None else _instrument(checked)
        if tool.reads is not Reads.ACCOUNT:
            return Basis(instrument)
        note = "read-only: orders are shown as they were last recorded, and may have filled since"
        return Basis(instrument, account=self.desk.account, note=note if self.desk.settings.read_only else None)

    def _basis(self, tool: Tool, checked: Arguments, call: Call, found: Basis) -> Basis:
        """Returns the basis of a result, which names what is missing from an account that is not up to date."""
        basis = found.with_defaults(self._declared(tool, checked))
        behind = self.desk.trading.behind(call.principal) if tool.reads is Reads.ACCOUNT else None
        return replace(basis, note="; ".join(filter(None, (behind, basis.note)))) if behind else basis

    def _source(self, tool: Tool) -> str | None:
        """Returns the name of the store that a tool reads, if any."""
        if tool.reads.personal:
            return self.desk.trading.records.source
        return self.desk.store.name if tool.reads is Reads.BARS else None

    async def _answer(self, tool: Tool, checked: Arguments, call: Call) -> CachedResult:
        async def work() -> Result[Any]:
            result = await self._in_time(tool, call, checked)
            value = result.value
            if isinstance(value, Media):
                require_finite(value.payload, tool.name)
            else:
                value = tool.rounding(value) if tool.rounding else value
                require_finite(value, tool.name)
            return replace(result, value=value, basis=self._basis(tool, checked, call, result.basis))

        ttl = float(getattr(self.desk.settings, tool.cache)) if tool.cache else 0.0
        if ttl <= 0:
            try:
                return CachedResult(await work(), cached=False, remaining=None)
            finally:
                if tool.changes:  # even if it failed, because part of it may have been written
                    self._cache.drop(lambda key: isinstance(key, tuple) and key[0] in tool.changes)
        if self.desk.clock.moving:  # in a fast replay the market moves on before a second has passed
            ttl /= max(1.0, self.desk.settings.replay_speed)
        refresh = bool(getattr(checked, "force_refresh", False))
        given = checked.model_dump_json(exclude=_REFRESH)
        fixed_time = None if self.desk.clock.moving else self.desk.clock.epoch()
        # Of each principal: whether a result is cached would show another one what was asked.
        key = (tool.name, call.principal, fixed_time, given)
        return await self._cache.get(key, ttl, work, refresh=refresh, keeps=lambda result: not result.partial)

    async def _in_time(self, tool: Tool, call: Call, checked: Arguments) -> Result[Any]:
        """Returns the result of a tool. Raises `CallTimeout` if it takes longer than the setting `timeout`."""
        settings = self.desk.settings
        limit = settings.timeout
        try:
            # Answers of a scenario must not depend on speed: it waits for all bars.
            with call_within(0.0 if settings.acts_in else limit):
                async with asyncio.timeout(limit or None) as bound:
                    return await tool.handler(call, checked)
        except TimeoutError:
            if not bound.expired():
                raise  # of something inside, which has not told what took so long
            writes = tool.effect in {Effect.WRITE, Effect.DESTRUCTIVE}
            hint = (
                "it may still take effect: check before you retry"
                if writes
                else (tool.late and tool.late(call, checked)) or "bars fetched so far are stored: retry"
            )
            raise CallTimeout(
                f"{tool.name} took longer than {limit:g} s (OPENBELL_TIMEOUT); {hint}", timeout_s=limit
            ) from None


def _ms_since(began: float) -> float:
    return (time.perf_counter() - began) * 1000


def _checked(wanted: type[Arguments], given: Mapping[str, Any]) -> Arguments:
    """Returns the validated arguments. Raises `InvalidParameter` if the tool does not accept them."""
    given = bounded(given, _names(wanted))
    try:
        return wanted.model_validate(given)
    except ValidationError as error:
        faults = faults_of(error)
        text = explain(faults, given, "arguments", wanted)
        raise InvalidParameter(text, parameters=faulty_arguments(faults)) from None


@cache
def _names(wanted: type[Arguments]) -> tuple[str, ...]:
    """Returns the names of a tool's arguments."""
    return tuple(field.alias or name for name, field in wanted.model_fields.items())


def _instrument(given: Arguments) -> Instrument | None:
    """Returns the instrument that the arguments name, if any: the truth header needs it even if the call fails."""
    symbol = next((found for name in SYMBOLS if (found := vars(given).get(name)) is not None), None)
    if symbol is not None:
        with suppress(InvalidSymbol):  # the handler raises it again
            return parse(symbol)
    return None
