"""Cache, pages, schemas, dialects and the runner, through a small service of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field
from typing_extensions import TypedDict

from openbell.backtest.errors import BacktesterUnavailable, BacktestTimeout
from openbell.desk.desk import Desk
from openbell.desk.settings import load
from openbell.market.errors import CallTimeout, FeedUnavailable, InvalidSymbol, OpenbellError, UnknownSymbol
from openbell.market.instruments import parse
from openbell.protocol.call import Basis, Call, Result
from openbell.protocol.dialects import EnvelopeDialect, JsonRpcDialect, ResultMetrics
from openbell.protocol.result_fields import pagination
from openbell.protocol.service import Runner, Service, TtlCache
from openbell.protocol.session import Principal, Scope
from openbell.protocol.tool import Arguments, Effect, Reads, Tool
from tests.sessions import session


class Echo(Arguments):
    text: str
    times: Annotated[int, Field(ge=1, le=3)] = 1
    force_refresh: bool = False


class Echoed(TypedDict):
    text: str
    count: int


class Counter:
    """Counts the computations behind a cached tool."""

    def __init__(self) -> None:
        self.count = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def echo(self, call: Call, given: Echo) -> Result[Echoed]:
        self.count += 1
        count = self.count
        await self.gate.wait()
        if given.text == "bug":
            raise RuntimeError("secret inner detail")
        if given.text == "fail":
            raise UnknownSymbol("ZZZ")
        return Result({"text": given.text * given.times, "count": count})


def service(
    counter: Counter,
    effect: Effect = Effect.READ,
    cache: str = "cache_volatility",
    reads: Reads = Reads.RECORDS,
) -> Service:
    tool = Tool("echo", "Echoes.", Echo, Echoed, counter.echo, "test", reads, effect=effect, cache=cache)
    dialect = EnvelopeDialect({UnknownSymbol: "SYMBOL_NOT_FOUND", InvalidSymbol: "INVALID_SYMBOL"})
    return Service("test", "Test", "", (tool,), dialect)


def desk(home: Path, **settings: Any) -> Desk:
    return Desk(load({"OPENBELL_HOME": str(home)}, **settings))


def test_errors_of_the_backtester_have_the_contracts_codes() -> None:
    dialect = EnvelopeDialect({CallTimeout: "TIMEOUT"})
    for error, code in (
        (BacktesterUnavailable("gone"), "GRPC_ERROR"),
        (BacktestTimeout("slow"), "BACKTEST_TIMEOUT"),
        (CallTimeout("slow"), "TIMEOUT"),
    ):
        assert dialect.error(error, ResultMetrics(1.0), "run_backtest").payload["error"]["code"] == code


def test_answers_are_cached_by_every_argument_and_principal(tmp_path: Path) -> None:
    async def main() -> None:
        counter, here = Counter(), desk(tmp_path)
        runner = Runner(service(counter), here)

        async def ask(principal: str = "a", **arguments: Any) -> Any:
            asking = Principal(principal, frozenset(Scope))
            return (await runner.run("echo", arguments, session(asking))).payload

        first = await ask(text="x")
        again = await ask(text="x", times=1)
        assert (first["_metadata"]["cached"], again["_metadata"]["cached"]) == (False, True)
        assert first["data"] == again["data"]
        assert 0 < again["_metadata"]["cache_ttl_remaining"] <= 30
        assert first["_metadata"]["cache_ttl_remaining"] is None
        assert (await ask(text="x", times=2))["_metadata"]["cached"] is False
        assert (await ask("b", text="x"))["_metadata"]["cached"] is False
        fresh = await ask(text="x", force_refresh=True)
        assert fresh["_metadata"]["cached"] is False
        assert (await ask(text="x"))["data"] == fresh["data"], "a refresh refills"

    asyncio.run(main())


def test_a_result_is_never_cached_for_another_principal(tmp_path: Path) -> None:
    async def main() -> None:
        counter, here = Counter(), desk(tmp_path)
        runner = Runner(service(counter, reads=Reads.BARS), here)
        for subject in ("a", "b", "a"):
            await runner.run("echo", {"text": "x"}, session(Principal(subject, frozenset(Scope))))
        assert counter.count == 2, "what is cached would show what another one has asked"

    asyncio.run(main())


def test_a_cached_answer_rests_on_what_the_first_one_did(tmp_path: Path) -> None:
    async def handler(_call: Call, _given: Echo) -> Result[Echoed]:
        return Result({"text": "", "count": 0}, Basis(parse("BTC/USD"), 60, note="a price is in doubt"))

    async def main() -> None:
        tool = Tool("echo", "Echoes.", Echo, Echoed, handler, "test", Reads.ACCOUNT, cache="cache_volatility")
        runner = Runner(Service("test", "Test", "", (tool,), EnvelopeDialect({})), desk(tmp_path))
        client = session()
        first, again = [await runner.run("echo", {"text": "x"}, client) for _ in range(2)]
        assert again.payload["_metadata"]["cached"] is True
        assert first.payload["_metadata"]["source"] == again.payload["_metadata"]["source"] == "sqlite"
        for each in (first, again):
            assert each.truth["account"] == "paper"
            assert each.truth["note"] == "a price is in doubt"
            assert each.truth["session"] == "regular"
            assert each.truth["age_s"] > 0

    asyncio.run(main())


@pytest.mark.parametrize(("scope", "held"), [(Scope.READ, Scope.TRADE), (Scope.ADMIN, Scope.READ)])
def test_a_tool_needs_its_scope(tmp_path: Path, scope: Scope, held: Scope) -> None:
    counter = Counter()
    tool = Tool("echo", "Echoes.", Echo, Echoed, counter.echo, "test", Reads.NOTHING, scope=scope)
    runner = Runner(Service("test", "Test", "", (tool,), EnvelopeDialect({})), desk(tmp_path))
    refused = asyncio.run(runner.run("echo", {"text": "x"}, session(Principal("a", frozenset({held})))))
    assert f"needs the scope {scope}" in refused.payload["error"]["message"]
    allowed = asyncio.run(runner.run("echo", {"text": "x"}, session(Principal("a", frozenset({scope})))))
    assert not allowed.is_error
    assert counter.count == 1


def test_a_toolset_that_is_not_offered_is_neither_listed_nor_run(tmp_path: Path) -> None:
    counter, here = Counter(), desk(tmp_path)
    runner = Runner(service(counter), here, frozenset({"market"}))
    assert runner.offered == []
    reply = asyncio.run(runner.run("echo", {"text": "x"}, session()))
    assert "toolset test" in reply.payload["error"]["message"]
    assert counter.count == 0


def test_errors_are_not_cached(tmp_path: Path) -> None:
    async def main() -> None:
        counter, here = Counter(), desk(tmp_path)
        runner = Runner(service(counter), here)
        for expected in (1, 2):
            reply = await runner.run("echo", {"text": "fail"}, session())
            assert reply.is_error
            assert reply.payload["error"]["code"] == "SYMBOL_NOT_FOUND"
            assert counter.count == expected

    asyncio.run(main())


def test_equal_calls_at_one_time_share_one_computation(tmp_path: Path) -> None:
    async def main() -> None:
        counter, here = Counter(), desk(tmp_path)
        counter.gate.clear()
        runner = Runner(service(counter), here)
        calls = [asyncio.create_task(runner.run("echo", {"text": "x"}, session())) for _ in range(10)]
        while counter.count == 0:
            await asyncio.sleep(0)
        counter.gate.set()
        replies = await asyncio.gather(*calls)
        assert counter.count == 1
        assert {reply.payload["data"]["count"] for reply in replies} == {1}

    asyncio.run(main())


def test_a_caller_that_gives_up_does_not_take_the_others_along(tmp_path: Path) -> None:
    async def main() -> None:
        counter, here = Counter(), desk(tmp_path)
        counter.gate.clear()
        runner = Runner(service(counter), here)
        one, two = (asyncio.create_task(runner.run("echo", {"text": "x"}, session())) for _ in range(2))
        while counter.count == 0:
            await asyncio.sleep(0)
        one.cancel()
        counter.gate.set()
        assert (await two).payload["data"]["count"] == 1
        with pytest.raises(asyncio.CancelledError):
            await one

    asyncio.run(main())


def test_a_bug_says_nothing_of_its_inside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    here = desk(tmp_path)
    reply = asyncio.run(Runner(service(Counter()), here).run("echo", {"text": "bug"}, session()))
    assert reply.is_error
    assert "secret" not in str(reply.payload)
    assert "secret inner detail" in caplog.text


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"text": 5},
        {"text": "x", "times": 4},
        {"text": "x", "times": "1"},
        {"text": "x", "other": 1},
        {"text": None},
    ],
)
def test_bad_arguments_are_invalid_parameters(tmp_path: Path, arguments: dict[str, Any]) -> None:
    here = desk(tmp_path)
    reply = asyncio.run(Runner(service(Counter()), here).run("echo", arguments, session()))
    assert reply.payload["error"]["code"] == "INVALID_PARAMETER"
    assert reply.payload["_metadata"]["latency_ms"] >= 0


@pytest.mark.parametrize("effect", [Effect.WRITE, Effect.DESTRUCTIVE])
def test_read_only_hides_and_refuses_writes(tmp_path: Path, effect: Effect) -> None:
    here = desk(tmp_path, read_only=True)
    wanted = service(Counter(), effect)
    assert Runner(wanted, here).offered == []
    reply = asyncio.run(Runner(wanted, here).run("echo", {"text": "x"}, session()))
    assert reply.is_error
    assert "read-only" in reply.payload["error"]["message"]


def test_a_cache_forgets_with_time_number_and_on_demand() -> None:
    async def main() -> None:
        now = [0.0]
        cache = TtlCache(most=2, now=lambda: now[0])
        counter = iter(range(100))

        async def work() -> int:
            return next(counter)

        assert (await cache.get("a", 10, work)).value == 0
        now[0] = 9.9
        assert (await cache.get("a", 10, work)).cached
        now[0] = 10.0
        assert (await cache.get("a", 10, work)).value == 1
        await cache.get("b", 10, work)
        await cache.get("c", 10, work)
        assert not (await cache.get("a", 10, work)).cached, "the oldest makes room"
        cache.drop(lambda key: key == "a")
        assert not (await cache.get("a", 10, work)).cached
        assert not (await cache.get("d", 0, work)).cached
        assert not (await cache.get("d", 0, work)).cached

    asyncio.run(main())


def test_attack_large_results_do_not_fill_the_memory() -> None:
    """However many different questions somebody asks, a cache keeps a limited number of values."""

    async def main() -> None:
        cache = TtlCache(most_values=20_000)

        async def rows() -> Result[Any]:
            return Result({"items": [{"open": 1.0, "close": 2.0, "time": "2026-01-02"}] * 1_000})

        for number in range(8):
            await cache.get(number, 60, rows)
        kept = [(await cache.get(number, 60, rows)).cached for number in (7, 6, 5, 4, 3)]
        assert kept == [True, True, True, True, False], "the oldest make room"

        async def text() -> str:
            return "x" * 10_000_000

        await cache.get("text", 60, text)
        assert not (await cache.get("text", 60, text)).cached

    asyncio.run(main())


@given(st.integers(0, 40), st.integers(0, 30), st.integers(1, 10))
def test_there_is_more_as_long_as_a_page_ends_before_the_last(total: int, offset: int, limit: int) -> None:
    told = pagination(offset, limit, total)
    assert (told["offset"], told["limit"], told["total"]) == (offset, limit, total)
    assert told["has_more"] == bool(list(range(total))[offset + limit :])


def test_the_most_specific_class_decides_the_code() -> None:
    dialect = JsonRpcDialect({OpenbellError: (-1, "any"), FeedUnavailable: (-32004, "Market data unavailable")})
    metrics = ResultMetrics(0.0)
    assert dialect.error(FeedUnavailable("down"), metrics, "echo").code == -32004
    assert dialect.error(UnknownSymbol("X"), metrics, "echo").code == -1


def test_schemas_are_self_contained() -> None:
    tool = service(Counter()).tools[0]
    assert tool.input_schema == {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "text": {"type": "string"},
            "times": {"type": "integer", "minimum": 1, "maximum": 3, "default": 1},
            "force_refresh": {"type": "boolean", "default": False},
        },
        "required": ["text"],
    }
