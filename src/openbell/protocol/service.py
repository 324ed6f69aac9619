"""A service: a named set of tools and how a call to one of them runs, whatever carries the call."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

from pydantic import ValidationError

from openbell.desk.desk import Desk
from openbell.market.errors import CallTimeout, InvalidParameter, InvalidSymbol, OpenbellError
from openbell.market.instruments import Instrument, parse
from openbell.market.nearest import did_you_mean
from openbell.protocol import access
from openbell.protocol.access import Toolsets, offers
from openbell.protocol.bounds import SYMBOLS, refuse_long_texts
from openbell.protocol.cache import Answer, TtlCache
from openbell.protocol.call import Basis, Call, Result, truth
from openbell.protocol.dialects import Dialect, Metrics, Reply
from openbell.protocol.finite import finite_or_null, require_finite
from openbell.protocol.media import Media
from openbell.protocol.session import Session
from openbell.protocol.tool import Arguments, Effect, Reads, Tool

log = logging.getLogger(__name__)

T = TypeVar("T")
_LONGEST_MESSAGE = 2_000


@dataclass(frozen=True)
class Service:
    """One contract's server: its identity, its tools and its dialect."""

    name: str
    """What the server calls itself."""
    title: str
    instructions: str
    tools: tuple[Tool, ...]
    dialect: Dialect
    command: str = ""
    """As in `openbell mcp COMMAND`, where that is not its name."""

    @cached_property
    def by_name(self) -> dict[str, Tool]:
        """The tools by name."""
        return {tool.name: tool for tool in self.tools}

    def unknown(self, tool: str) -> str:
        """What to say of a tool that is not here: the nearest that is, or all of them."""
        return (
            f"Unknown tool: {tool[:80]}{did_you_mean(tool, self.by_name) or '; there are ' + ', '.join(self.by_name)}"
        )


class Runner:
    """Runs the calls of one service on one desk, for all sessions: access checked, arguments too, answers cached, errors
    in the contract's form.
    """

    def __init__(self, service: Service, desk: Desk, toolsets: Toolsets = None) -> None:
        self.service = service
        self.desk = desk
        self._toolsets = toolsets
        self._cache = TtlCache()

    @property
    def offered(self) -> list[Tool]:
        """The tools that the settings allow."""
        return [tool for tool in self.service.tools if offers(tool, self.desk.settings, self._toolsets)]

    async def run(self, name: str, arguments: Mapping[str, Any], session: Session, request: Any = None) -> Reply:
        """The reply to one call. Raises `KeyError` for a tool that the service does not have."""
        tool = self.service.by_name[name]
        call = Call(self.desk, session, request)
        basis = self._declared(tool)
        began = time.perf_counter()
        dialect = self.service.dialect

        def spent() -> float:
            return (time.perf_counter() - began) * 1000

        try:
            access.check(tool, self.desk.settings, self._toolsets, session.principal)
            checked = _checked(tool.arguments, arguments)
            basis = Basis(instrument=_instrument(checked)).over(basis)
            answer = await self._answer(tool, checked, call)
            result: Result[Any] = answer.value
            basis = result.basis.over(basis)
            reply = dialect.result(result.value, Metrics(spent(), answer.cached, answer.remaining, self._source(tool)))
            for work in result.afterwards:
                session.replies.hold(request, work)
        except OpenbellError as error:
            if len(error.message) > _LONGEST_MESSAGE:  # it repeats a value that was sent
                error.message = error.message[:_LONGEST_MESSAGE] + "..."
            reply = dialect.error(error, Metrics(spent()), name)
            reply = replace(reply, payload=finite_or_null(reply.payload))
        except Exception:
            log.exception("%s failed", name)
            reply = dialect.bug(Metrics(spent()))
        return replace(reply, truth=truth(self.desk, call.at, basis))

    def _declared(self, tool: Tool) -> Basis:
        """What every answer of a tool rests on, errors included."""
        if tool.reads is not Reads.ACCOUNT:
            return Basis()
        note = "read-only: orders are shown as they were last recorded, and may have filled since"
        return Basis(account=self.desk.account, note=note if self.desk.settings.read_only else None)

    def _source(self, tool: Tool) -> str | None:
        """The name of the store behind a tool's answers."""
        if tool.reads.personal:
            return self.desk.trading.records.source
        return self.desk.store.name if tool.reads is Reads.BARS else None

    async def _answer(self, tool: Tool, checked: Arguments, call: Call) -> Answer:
        async def work() -> Result[Any]:
            result = await self._in_time(tool.handler(call, checked), tool)
            value = result.value
            require_finite(value.payload if isinstance(value, Media) else value, tool.name)
            return result

        ttl = float(getattr(self.desk.settings, tool.cache)) if tool.cache else 0.0
        if ttl <= 0:
            try:
                return Answer(await work(), cached=False, remaining=None)
            finally:
                if tool.changes:  # even if it failed: what it wrote may be there
                    self._cache.forget(lambda key: isinstance(key, tuple) and key[0] in tool.changes)
        given = checked.model_dump(mode="json")
        refresh = bool(given.pop("force_refresh", False))
        standing = None if self.desk.clock.moving else self.desk.clock.epoch()
        owner = call.principal if tool.reads.personal else None
        key = (tool.name, owner, standing, json.dumps(given, sort_keys=True))
        return await self._cache.get(key, ttl, work, refresh=refresh)

    async def _in_time(self, work: Awaitable[T], tool: Tool) -> T:
        """The result, or `CallTimeout` when it takes longer than a call may."""
        limit = self.desk.settings.timeout
        try:
            async with asyncio.timeout(limit or None):
                return await work
        except TimeoutError:
            writes = tool.effect in {Effect.WRITE, Effect.DESTRUCTIVE}
            hint = (
                "it may still be done: look before you ask again" if writes else "what was fetched is kept: ask again"
            )
            raise CallTimeout(
                f"{tool.name} took longer than {limit:g} s (OPENBELL_TIMEOUT); {hint}", timeout_s=limit
            ) from None


def _checked(wanted: type[Arguments], given: Mapping[str, Any]) -> Arguments:
    """The arguments, if they are what a tool takes. Raises `InvalidParameter`."""
    refuse_long_texts(given)
    try:
        return wanted.model_validate(dict(given))
    except ValidationError as error:
        raise InvalidParameter(_explain(error, wanted)) from None


def _instrument(given: Arguments) -> Instrument | None:
    """The instrument that was asked for: the truth header speaks of it, whatever becomes of the call."""
    symbol = next((found for name in SYMBOLS if (found := getattr(given, name, None)) is not None), None)
    if symbol is not None:
        with suppress(InvalidSymbol):  # the handler refuses it in its turn
            return parse(symbol)
    return None


def _explain(error: ValidationError, arguments: type[Arguments]) -> str:
    """What is wrong with the arguments, one clause each, without echoing the values."""
    clauses = []
    for fault in error.errors(include_input=False, include_url=False, include_context=False):
        place = ".".join(str(part) for part in fault["loc"]) or "arguments"
        reason = {"missing": "is required", "extra_forbidden": "is not an argument of this tool"}.get(fault["type"])
        if fault["type"] == "extra_forbidden" and len(fault["loc"]) == 1:
            reason = f"{reason}{did_you_mean(place, arguments.model_fields)}"
        clauses.append(f"{place} {reason}" if reason else f"{place}: {fault['msg']}")
    return "; ".join(clauses[:8])
