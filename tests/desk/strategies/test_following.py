"""What the engine records: signals, promotions, and the consensus of everyone who sees a symbol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from openbell.desk.research.strategies.consensus_records import withdraw_votes
from openbell.desk.research.strategies.figures import PartFigures, StrategyFigures
from openbell.desk.research.strategies.following import _record
from openbell.stores.records import strategies as queries
from openbell.stores.records.journal import Journal
from openbell.stores.records.snapshot import View
from openbell.strategies.consensus import Action
from openbell.strategies.implementations import Forward, Implementation, ImplementationStatus
from tests.servers.desks import awaited, bench_as_found

AT = "2026-03-02T15:00:00Z"
NOW = 1_772_463_600
BTC = "BTC/USD"
COSTS = [0.001, 0.0005]


def implementation(name: str, principal: str) -> Implementation:
    dates = (0, NOW - 86400 * 300, NOW - 86400 * 200.0, NOW - 86400 * 200.0)
    found = {"costs": COSTS, "content": name, "generation": 1, "attempt": 1}
    return Implementation(
        name, principal, "SMA_RSI", "f", BTC, "1h", {}, ImplementationStatus.VALIDATED, "", *dates, 3, found
    )


def figures(action: Action) -> StrategyFigures:
    part = PartFigures(20, 20, 12, 0.6, 1.0, 0.1, 0.05)
    return StrategyFigures(NOW, part, part, part, 0.6, action, NOW - 7200, "b" * 64)


@awaited
async def test_the_consensus_of_a_principal_follows_after_its_own_strategies_are_retired(tmp_path: Path) -> None:
    async with bench_as_found(tmp_path, AT, SCENARIO="s") as desk:
        records = desk.desk.trading.records
        shared, own = implementation("impl_shared", ""), implementation("impl_own", "local")

        def begin(journal: Journal) -> None:
            for each in (shared, own):
                journal.put("implementation", each, new=True)

        await records.write(begin)
        now = {"impl_shared": figures(Action.BUY), "impl_own": figures(Action.SELL)}
        await records.write(lambda journal: _record(journal, BTC, COSTS, now, {}))
        first = await records.read(lambda view: queries.consensus(view, queries.consensus_id(BTC, "local", COSTS)))
        assert first is not None
        assert (first["bullish"], first["bearish"]) == (1, 1)

        await records.write(
            lambda journal: journal.put("implementation", replace(own, status=ImplementationStatus.RETIRED))
        )
        await records.write(lambda journal: _record(journal, BTC, COSTS, {"impl_shared": figures(Action.BUY)}, {}))
        after = await records.read(lambda view: queries.consensus(view, queries.consensus_id(BTC, "local", COSTS)))
        assert after is not None
        assert (after["bullish"], after["bearish"], after["consensus"]) == (1, 0, "STRONG_BUY")
        named = await records.read(lambda view: queries.latest_consensus(view, BTC, "local", COSTS))
        assert named == after["seq"]


@awaited
async def test_a_step_is_recorded_once_at_its_own_bar(tmp_path: Path) -> None:
    good = Forward(12, 1.0, 0.02, 0.1)
    course = [(NOW - 7200, replace(good, trades=9)), (NOW - 3600, good), (NOW, good)]
    async with bench_as_found(tmp_path, AT, SCENARIO="s") as desk:
        records = desk.desk.trading.records
        await records.write(lambda journal: journal.put("implementation", implementation("impl_a", ""), new=True))
        for _ in range(2):
            now = {"impl_a": figures(Action.BUY)}
            await records.write(lambda journal: _record(journal, BTC, COSTS, now, {"impl_a": course}))  # noqa: B023
        (found,) = await records.read(lambda view: queries.implementations_of(view, "", COSTS, symbol=BTC))
        assert (found.status, found.changed_at) == (ImplementationStatus.DEPLOYED, NOW - 3600)
        entries = await desk.entries()
        assert entries == 4, "the implementation, its signal, the step and the consensus"


@awaited
async def test_votes_that_remain_after_a_search_are_still_a_consensus(tmp_path: Path) -> None:
    async with bench_as_found(tmp_path, AT, SCENARIO="s") as desk:
        records = desk.desk.trading.records
        shared, own = implementation("impl_shared", ""), implementation("impl_own", "local")

        def begin(journal: Journal) -> None:
            for each in (shared, own):
                journal.put("implementation", each, new=True)

        await records.write(begin)
        now = {"impl_shared": figures(Action.BUY), "impl_own": figures(Action.SELL)}
        await records.write(lambda journal: _record(journal, BTC, COSTS, now, {}))

        async def votes(principal: str) -> tuple[int, int] | None:
            def work(view: View) -> tuple[int, int] | None:
                row = queries.consensus(view, queries.consensus_id(BTC, principal, COSTS))
                named = queries.latest_consensus(view, BTC, principal, COSTS)
                return None if row is None or named != row["seq"] else (row["bullish"], row["bearish"])

            return await records.read(work)

        for ended, left in ((own, ((1, 0), (1, 0))), (shared, (None, None))):

            def retire(journal: Journal, ended: Implementation = ended) -> None:
                journal.put("implementation", replace(ended, status=ImplementationStatus.RETIRED))
                withdraw_votes(journal, BTC, COSTS)

            await records.write(retire)
            assert (await votes("local"), await votes("")) == left


@awaited
async def test_a_strategy_that_cannot_be_computed_keeps_no_other_of_its_symbol_from_being_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bench_as_found(tmp_path, AT, SCENARIO="s") as desk:
        trading, follower = desk.desk.trading, desk.desk.strategies.follower
        service, records = desk.desk.strategies.figures, trading.records
        broken = [True]

        async def of(wanted: Sequence[Implementation], *_given: Any) -> dict[str, StrategyFigures]:
            if broken[0] and any(each.id == "impl_broken" for each in wanted):
                raise ZeroDivisionError
            return {each.id: figures(Action.BUY) for each in wanted}

        async def courses(*_given: Any) -> dict[str, Any]:
            return {}

        def begin(journal: Journal) -> None:
            for each in ("impl_broken", "impl_good"):
                journal.put("implementation", implementation(each, ""), new=True)

        async def votes() -> int:
            row = await records.read(lambda view: queries.consensus(view, queries.consensus_id(BTC, "", COSTS)))
            return 0 if row is None else int(row["bullish"])

        monkeypatch.setattr(service, "of", of)
        monkeypatch.setattr(service, "courses", courses)
        await records.write(begin)
        await follower.step(None, NOW)
        assert await votes() == 1
        assert list(trading.failing.faults()) == [
            "strategy impl_broken fails: ZeroDivisionError; the log has the trace"
        ]
        broken[0] = False
        await follower.step(None, NOW + 3600)
        assert await votes() == 2
        assert not list(trading.failing.faults())
