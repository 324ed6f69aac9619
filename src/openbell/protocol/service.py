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
from openbell.desk.settings import Settings
from openbell.market.errors import InvalidParameter, InvalidSymbol, OpenbellError, OutOfTime, Refused
from openbell.market.instruments import parse
from openbell.market.nearest import hint
from openbell.protocol.bounds import SYMBOLS, refuse_long_texts
from openbell.protocol.cache import Answer, TtlCache
from openbell.protocol.call import TRADE, Call, Principal
from openbell.protocol.dialects import Dialect, Metrics, Reply
from openbell.protocol.finite import finite_or_null, require_finite
from openbell.protocol.media import Media
from openbell.protocol.tool import Arguments, Effect, Tool

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
        return f"Unknown tool: {tool[:80]}{hint(tool, self.by_name) or '; there are ' + ', '.join(self.by_name)}"

    def offered(self, desk: Desk) -> list[Tool]:
        """The tools that these settings allow."""
        allowed = {Effect.READ, Effect.SESSION} if desk.settings.read_only else set(Effect)
        return [tool for tool in self.tools if tool.effect in allowed]


class Runner:
    """Runs calls of one service on one desk: arguments checked, answers cached, errors in the contract's form."""

    def __init__(self, service: Service, desk: Desk) -> None:
        self.service = service
        self.desk = desk
        self._cache = TtlCache()

    async def run(self, name: str, arguments: Mapping[str, Any], call: Call) -> Reply:
        """The reply to one call. Raises `KeyError` for a tool that the service does not have."""
        tool = self.service.by_name[name]
        began = time.perf_counter()
        dialect = self.service.dialect

        def metrics(answer: Answer | None = None) -> Metrics:
            spent = (time.perf_counter() - began) * 1000
            if answer is None:
                return Metrics(spent)
            return Metrics(spent, answer.cached, answer.remaining, call.source)

        try:
            answer = await self._answer(tool, arguments, call)
            value, call.newest, call.instrument, call.source = answer.value
            reply = dialect.result(value, metrics(answer))
            for work in call.afterwards:
                if call.later is None:
                    await work()
                else:
                    call.later(work)
        except OpenbellError as error:
            if len(error.message) > _LONGEST_MESSAGE:  # it repeats a value that was sent
                error.message = error.message[:_LONGEST_MESSAGE] + "..."
            reply = dialect.error(error, metrics(), name)
            reply = replace(reply, payload=finite_or_null(reply.payload))
        except Exception:
            log.exception("%s failed", name)
            reply = dialect.bug(metrics())
        return replace(reply, truth=call.truth())

    async def _answer(self, tool: Tool, arguments: Mapping[str, Any], call: Call) -> Answer:
        if self.desk.settings.read_only and tool.effect in {Effect.WRITE, Effect.DESTRUCTIVE}:
            raise Refused(f"{tool.name} writes, and this desk was started with --read-only")
        if tool.trade:
            _allow_trading(tool.name, self.desk.settings, call.principal)
        refuse_long_texts(arguments)
        try:
            checked = tool.arguments.model_validate(dict(arguments))
        except ValidationError as error:
            raise InvalidParameter(_explain(error, tool.arguments)) from None
        _note_instrument(call, checked)

        async def work() -> tuple[Any, int | None, Any, str | None]:
            value = await self._in_time(tool.handler(call, checked), tool)
            require_finite(value.payload if isinstance(value, Media) else value, tool.name)
            return value, call.newest, call.instrument, call.source

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
        key = (tool.name, call.principal.subject, standing, json.dumps(given, sort_keys=True))
        return await self._cache.get(key, ttl, work, refresh=refresh)

    async def _in_time(self, work: Awaitable[T], tool: Tool) -> T:
        """The result, or `OutOfTime` when it takes longer than a call may."""
        limit = self.desk.settings.timeout
        try:
            async with asyncio.timeout(limit or None):
                return await work
        except TimeoutError:
            writes = tool.effect in {Effect.WRITE, Effect.DESTRUCTIVE}
            hint = (
                "it may still be done: look before you ask again" if writes else "what was fetched is kept: ask again"
            )
            raise OutOfTime(
                f"{tool.name} took longer than {limit:g} s (OPENBELL_TIMEOUT); {hint}", timeout_s=limit
            ) from None


def _allow_trading(tool: str, settings: Settings, principal: Principal) -> None:
    """Raise `Refused` unless this desk and this caller may trade."""
    if not settings.trade:
        raise Refused(f"{tool} is a trading tool: start the server with --trade to allow it")
    if TRADE not in principal.scopes:
        raise Refused(f"{tool} needs the scope {TRADE}")


def _note_instrument(call: Call, given: Arguments) -> None:
    """The truth header speaks of the instrument that was asked for, whatever becomes of the call."""
    symbol = next((found for name in SYMBOLS if (found := getattr(given, name, None)) is not None), None)
    if symbol is not None:
        with suppress(InvalidSymbol):  # the handler refuses it in its turn
            call.about(parse(symbol))


def _explain(error: ValidationError, arguments: type[Arguments]) -> str:
    """What is wrong with the arguments, one clause each, without echoing the values."""
    clauses = []
    for fault in error.errors(include_input=False, include_url=False, include_context=False):
        place = ".".join(str(part) for part in fault["loc"]) or "arguments"
        reason = {"missing": "is required", "extra_forbidden": "is not an argument of this tool"}.get(fault["type"])
        if fault["type"] == "extra_forbidden" and len(fault["loc"]) == 1:
            reason = f"{reason}{hint(place, arguments.model_fields)}"
        clauses.append(f"{place} {reason}" if reason else f"{place}: {fault['msg']}")
    return "; ".join(clauses[:8])
