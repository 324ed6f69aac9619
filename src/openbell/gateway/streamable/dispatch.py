"""Runs the handlers of requests that have passed the transport's checks, and sends their responses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from time import perf_counter
from typing import Any

from mcp.server.connection import Connection
from mcp.server.runner import modern_error_data, serve_one
from mcp_types import METHOD_NOT_FOUND, SERVER_INFO_META_KEY, ErrorData

from openbell.gateway.calls import Calls, CallWatch, HttpCall, tool_call
from openbell.gateway.cancel_scope import Interruption
from openbell.gateway.streamable import messages, revision_2026_07, wire
from openbell.gateway.streamable.exchange import HttpExchange
from openbell.gateway.streamable.messages import McpRequest
from openbell.gateway.streamable.sessions import ClientState
from openbell.protocol.sdk import Server
from openbell.protocol.server import call_tool
from openbell.protocol.service import Runner, Service
from openbell.protocol.session import Scope

REQUEST_CANCELLED = -32800
_SLOW_SECONDS = 0.05
"""A request that takes longer is watched for a client that disconnects, and kept alive."""


class Dispatcher:
    """Runs the requests to one server, and watches the calls of tools."""

    def __init__(
        self,
        service: Service,
        server: Server[Any],
        *,
        runner: Runner | None,
        calls: Calls,
        watch: CallWatch,
    ) -> None:
        """`runner` calls the tools of the service without the SDK."""
        self._tools = service.by_name
        self._known = {tool.name: tool_call(tool) for tool in service.tools}
        self._server = server
        self._server_info = server.server_info_stamp
        self._runner = runner
        self._calls = calls
        self._watch = watch

    async def run(
        self,
        post: McpRequest,
        message: dict[str, Any],
        exchange: HttpExchange,
        client: tuple[str, Any, Any],
        soft: ClientState | None,
    ) -> None:
        """Run a request and send its response. `client`: its revision, info and capabilities."""
        began = perf_counter()
        name = messages.tool_of(message)
        tool = self._tools.get(name) if isinstance(name, str) else None
        is_call = message["method"] == "tools/call" or (tool is not None and tool.method)
        if not is_call or not isinstance(name, str):
            await self._answer(exchange, self._serve(message, exchange, client), soft, post.receive)
            return
        call = HttpCall(name, "", frozenset(), name) if tool is None else self._known[name]
        scope = Scope.READ if tool is None else tool.scope
        principal = post.principal
        refusal = self._calls.refusal(post.scope, principal, call, lambda: self._watch.limit(principal, scope), began)
        if refusal is not None:
            await refusal.send(post.send, refusal.rpc_body(message["id"]))
            return
        with self._calls.recorded(post.scope, principal, call, began) as outcome:
            if self._runner is not None and messages.is_plain_call(message):
                work = self._call(self._runner, name, message["params"].get("arguments") or {}, exchange)
                outcome.text = await self._answer(exchange, work, soft, post.receive, wire.tool_response, is_call=True)
            else:
                work = self._serve(message, exchange, client)
                outcome.text = await self._answer(exchange, work, soft, post.receive, is_call=True)

    def _serve(
        self, message: dict[str, Any], exchange: HttpExchange, client: tuple[str, Any, Any]
    ) -> Coroutine[Any, Any, dict[str, Any]]:
        """Returns the SDK's handling of a request."""
        connection = Connection.from_envelope(*client)
        method, params = message["method"], message.get("params")
        return serve_one(self._server, exchange, method, params, connection=connection, lifespan_state={})

    async def _call(
        self, runner: Runner, tool: str, arguments: dict[str, Any], exchange: HttpExchange
    ) -> dict[str, Any]:
        """Call a tool without the SDK, which takes longer to check the message than the message's way here."""
        result = await call_tool(runner, tool, arguments, exchange.session, exchange.request_id)
        if exchange.modern:
            result["resultType"] = "complete"
            result["_meta"][SERVER_INFO_META_KEY] = self._server_info
        return result

    async def _answer(
        self,
        exchange: HttpExchange,
        work: Coroutine[Any, Any, dict[str, Any]],
        soft: ClientState | None,
        receive: wire.Receive,
        written: Callable[[Any, dict[str, Any]], bytes] = wire.response,
        *,
        is_call: bool = False,
    ) -> str:
        """Run a handler and send its result, as `written` returns it for a request id; returns the outcome.

        `is_call`: the request calls a tool. Clients do not read the body of a 404, which is for unknown methods.
        """
        interruption, gone = Interruption(), asyncio.Event()

        async def while_slow() -> None:
            # In revisions with a handshake, a closed connection cancels nothing: the response is lost.
            watching = _on_disconnect(receive, interruption if exchange.modern else gone.set)
            await asyncio.gather(exchange.keep_alive(), watching)

        number, error = exchange.request_id, None
        slow = Delayed(_SLOW_SECONDS, while_slow)
        if soft is not None:
            soft.begin(messages.key(number), interruption)
        try:
            with interruption:
                result = await work
        except Exception as failure:  # noqa: BLE001 - the SDK maps it, and logs what it does not know
            error = modern_error_data(failure)
        finally:
            slow.stop()
            if soft is not None:
                soft.end(messages.key(number), interruption)
        if interruption.happened:
            if not exchange.modern:
                await exchange.finish(wire.error(number, REQUEST_CANCELLED, "Request cancelled"))
            return "cancelled"
        if error is None:
            await exchange.finish(written(number, result))
        else:
            plain = not exchange.modern or (is_call and error.code == METHOD_NOT_FOUND)
            await exchange.finish(_error(number, error), 200 if plain else revision_2026_07.status_of(error.code))
        if gone.is_set() and not exchange.is_logged:
            exchange.session.replies.discard(number)
        else:
            await exchange.session.replies.sent(number)
        return "error" if error is not None or result.get("isError") else "ok"


async def _on_disconnect(receive: wire.Receive, act: Callable[[], None]) -> None:
    """Call a function when the client disconnects."""
    await wire.disconnected(receive)
    act()


def _error(number: Any, error: ErrorData) -> bytes:
    return wire.error(number, error.code, error.message, error.data)


class Delayed:
    """Begins some work after a number of seconds, unless it is stopped before."""

    __slots__ = ("_loop", "_task", "_timer", "_work")

    def __init__(self, seconds: float, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        self._loop = asyncio.get_running_loop()
        self._work = work
        self._task: asyncio.Task[object] | None = None
        self._timer = self._loop.call_later(seconds, self._begin)

    def stop(self) -> None:
        """Stop the work, or keep it from beginning."""
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        self._task = self._loop.create_task(self._work())
