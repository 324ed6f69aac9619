"""What one principal's calls show about another's, and what a token for reading alone can store."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from openbell.desk.desk import Desk
from openbell.desk.settings import load
from openbell.protocol.dialects import Reply
from openbell.protocol.service import Runner
from openbell.protocol.session import LOCAL_OPERATOR as OPERATOR
from openbell.protocol.session import Principal, Replies, Scope, Session, no_notifications
from openbell.servers import load as load_service

READER = Principal("reader", frozenset({Scope.READ}))
WRITER = Principal("writer", frozenset({Scope.READ, Scope.WRITE}))
TRADER = Principal("trader", frozenset({Scope.READ, Scope.TRADE}))
KEEPER = Principal("keeper", frozenset(Scope))
DECISION = {"symbol": "AAPL", "action": "BUY", "confidence": 0.5, "reasoning": "because"}
IMAGE = {"config": {"symbol": "NASDAQ:AAPL", "interval": "1D"}, "storage": True}


def desk_of(home: Path, **settings: str) -> Desk:
    return Desk(load({"OPENBELL_HOME": str(home), **{f"OPENBELL_{name}": text for name, text in settings.items()}}))


async def ask(desk: Desk, server: str, tool: str, who: Principal, **given: Any) -> Reply:
    session = Session(who, no_notifications, Replies(), stateless=True)
    return await _runner(desk, server).run(tool, given, session)


def _runner(desk: Desk, server: str) -> Runner:
    known = desk.__dict__.setdefault("test_runners", {})
    if server not in known:
        known[server] = Runner(load_service(server), desk)
    found: Runner = known[server]
    return found


def text_of(reply: Reply) -> str:
    return json.dumps(reply.payload) if reply.text is None else reply.text


@pytest.mark.anyio
async def test_attack_a_reader_stores_nothing(tmp_path: Path) -> None:
    asked: list[tuple[str, str, dict[str, Any]]] = [
        ("decisions", "save_decision", DECISION),
        ("strategy-db", "submit_new_spec", {"name": "A", "description": "a"}),
        ("chart-image", "generate_chart_image", IMAGE),
        (
            "chart-signals",
            "subscribe_alerts",
            {"symbol": "AAPL", "timeframe": "1min", "conditions": [{"type": "rsi_oversold"}]},
        ),
    ]
    async with desk_of(tmp_path) as desk:
        for server, tool, given in asked:
            reply = await ask(desk, server, tool, READER, **given)
            assert reply.is_error or reply.code is not None, tool
            assert "needs the scope write" in text_of(reply), tool
    assert not (tmp_path / "pictures").exists()


@pytest.mark.anyio
async def test_the_scopes_write_and_trade_both_store(tmp_path: Path) -> None:
    async with desk_of(tmp_path) as desk:
        for who in (WRITER, TRADER):
            reply = await ask(desk, "decisions", "save_decision", who, **DECISION)
            assert not reply.is_error, text_of(reply)


@pytest.mark.anyio
async def test_attack_decisions_beyond_the_quota_are_refused_and_others_are_not(tmp_path: Path) -> None:
    async with desk_of(tmp_path, QUOTA_DECISIONS="2", QUOTA_DECISIONS_MB="1") as desk:
        for _ in range(2):
            assert not (await ask(desk, "decisions", "save_decision", WRITER, **DECISION)).is_error
        refused = await ask(desk, "decisions", "save_decision", WRITER, **DECISION)
        assert "you have 2 decisions, and the most is 2 (OPENBELL_QUOTA_DECISIONS)" in text_of(refused)
        assert not (await ask(desk, "decisions", "save_decision", TRADER, **DECISION)).is_error


@pytest.mark.anyio
async def test_attack_large_decisions_end_at_the_quota_of_bytes(tmp_path: Path) -> None:
    async with desk_of(tmp_path, QUOTA_DECISIONS_MB="1") as desk:
        large = {**DECISION, "tool_calls": ["x" * 250_000]}
        replies = [await ask(desk, "decisions", "save_decision", WRITER, **large) for _ in range(6)]
        assert [reply.is_error for reply in replies] == [False] * 4 + [True] * 2
        assert "megabytes of decisions, and the most is 1 (OPENBELL_QUOTA_DECISIONS_MB)" in text_of(replies[-1])


@pytest.mark.anyio
async def test_attack_pages_of_large_decisions_are_read_without_what_they_do_not_show(tmp_path: Path) -> None:
    """A page of 100 decisions may rest on 25 MB of tool calls."""
    async with desk_of(tmp_path) as desk:
        assert not (
            await ask(desk, "decisions", "save_decision", WRITER, **DECISION, tool_calls=["x" * 250_000])
        ).is_error
        rows, _ = await desk.trading.decisions.recent(WRITER.subject, 100, 0, None, None)
        assert len(json.dumps([dict(row) for row in rows])) < 1_000


@pytest.mark.anyio
async def test_attack_stored_pictures_end_at_the_quota_and_others_store_theirs(tmp_path: Path) -> None:
    async with desk_of(tmp_path, QUOTA_PICTURES="1") as desk:
        pictures = desk.chart_images.pictures
        kept = pictures.put("writer", b"data", "png", 60.0)
        assert pictures.get(kept.name) == b"data"
        refused = await ask(desk, "chart-image", "generate_chart_image", WRITER, **IMAGE)
        assert "you have 1 stored picture, and the most is 1 (OPENBELL_QUOTA_PICTURES)" in text_of(refused)
        assert pictures.get(pictures.put("trader", b"more", "png", 60.0).name) == b"more"


@pytest.mark.anyio
async def test_attack_what_another_principal_has_asked_is_not_cached_for_this_one(tmp_path: Path) -> None:
    given = {"symbol": "AAPL", "timeframe": "1d", "limit": 2}
    async with desk_of(tmp_path) as desk:
        replies = [await ask(desk, "market-data", "get_candles", who, **given) for who in (READER, WRITER, READER)]
        found = [(reply.payload or {})["_metadata"] for reply in replies]
        assert [each["cached"] for each in found] == [False, False, True]


@pytest.mark.anyio
async def test_attack_storage_info_names_no_symbol_that_another_principal_has_asked_for(tmp_path: Path) -> None:
    (tmp_path / "watchlist.txt").write_text("MSFT\n")
    async with desk_of(tmp_path) as desk:
        for symbol in ("MSFT", "NVDA"):
            reply = await ask(desk, "market-data", "get_candles", WRITER, symbol=symbol, timeframe="1d", limit=2)
            assert not reply.is_error, text_of(reply)
        for who, stocks in ((READER, ["MSFT"]), (KEEPER, ["MSFT", "NVDA"])):
            reply = await ask(desk, "chart-signals", "get_storage_info", who)
            assert (reply.payload or {})["stored_symbols"]["stocks"] == stocks


@pytest.mark.anyio
async def test_attack_implementations_name_no_symbol_that_another_principal_has_asked_for(tmp_path: Path) -> None:
    (tmp_path / "watchlist.txt").write_text("MSFT\n")

    async def symbols(desk: Desk, who: Principal, spec: str) -> set[str]:
        given = {"spec_id": spec, "status": "ALL", "limit": 100, "force_refresh": True}
        reply = await ask(desk, "strategy-db", "get_implementations", who, **given)
        return {each["symbol"] for each in (reply.payload or {})["data"]["items"]}

    async with desk_of(tmp_path, TIMEOUT="60") as desk:
        reply = await ask(desk, "strategy", "get_top_strategies", WRITER, symbol="NVDA", limit=1)
        assert not reply.is_error, text_of(reply)
        spec = (reply.payload or {})["data"]["items"][0]["name"]
        assert "NVDA" in await symbols(desk, WRITER, spec)
        assert "NVDA" in await symbols(desk, OPERATOR, spec)
        assert "NVDA" not in await symbols(desk, READER, spec)
        await ask(desk, "strategy", "get_top_strategies", READER, symbol="NVDA", limit=1)
        assert "NVDA" in await symbols(desk, READER, spec), "what it has asked for itself"


@pytest.mark.anyio
async def test_attack_subscriptions_at_one_time_end_at_the_quota(tmp_path: Path) -> None:
    given = {"timeframe": "1min", "conditions": [{"type": "rsi_oversold"}]}
    async with desk_of(tmp_path, QUOTA_SUBSCRIPTIONS="1") as desk:
        symbols = ("AAPL", "MSFT", "NVDA")
        asked = (ask(desk, "chart-signals", "subscribe_alerts", WRITER, symbol=symbol, **given) for symbol in symbols)
        replies = await asyncio.gather(*asked)
        refused = [text_of(reply) for reply in replies if reply.is_error or reply.code is not None]
        assert len(refused) == 2
        assert all("you have 1 open subscription, and the most is 1" in each for each in refused), refused
