"""Background work: what fails is shown and starts again, and nothing else ends with it."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from openbell.desk.alerts.connection_subscriptions import ConnectionSubscriptions
from openbell.desk.desk import Desk
from openbell.desk.event_sources import BarSource
from openbell.desk.events import supervision
from openbell.desk.events.hub import BarsClosed, WatchlistChanged
from openbell.desk.events.supervision import FailingUnits, Supervisor, WorkState, WorkStatus, first_failure
from openbell.desk.settings import load
from openbell.market.errors import FeedUnavailable, SettingsError
from openbell.market.timeframes import Timeframe
from openbell.signals.crossing_alerts import CONDITIONS, CrossingAlert, CrossingRequest, CrossingSubscription
from tests.waiting import PATIENCE, until


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "FIRST_PAUSE", 0.01)


def traces(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [str(each.exc_info[1]) for each in caplog.records if each.exc_info]


def test_work_that_fails_is_logged_shown_and_started_again(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        supervisor, status, seen = Supervisor(), WorkStatus(), list[str]()
        begun, others = 0, asyncio.Event()

        async def fails_twice() -> None:
            nonlocal begun
            begun += 1
            status.become(WorkState.WORKING)
            if begun < 3:
                asyncio.get_running_loop().call_soon(lambda: seen.append(f"{status.state}: {status}"))
                raise RuntimeError(f"secret {begun}")
            await asyncio.Event().wait()

        async def other() -> None:
            await others.wait()

        supervisor.background("work", fails_twice, status)
        beside = supervisor.background("other", other)
        await until(lambda: begun == 3 and status.state is WorkState.WORKING, "the third start")
        assert seen[0].startswith("failed: failed with RuntimeError; starts again after 0.01 s")
        assert not any("secret" in each for each in seen), "the message may have a secret: it is in the log alone"
        assert traces(caplog) == ["secret 1", "secret 2"]
        others.set()
        await beside
        assert set(supervisor.statuses()) == {"work"}
        await supervisor.close()
        assert supervisor.statuses() == {}

    asyncio.run(main())


def test_work_whose_own_task_was_cancelled_by_something_else_does_not_end_in_silence() -> None:
    """A library that cancels a task of its own raises `CancelledError` in the work that awaits it."""

    async def main() -> None:
        supervisor, begun = Supervisor(), 0

        async def awaits_a_cancelled_task() -> None:
            nonlocal begun
            begun += 1
            task = asyncio.ensure_future(asyncio.sleep(60))
            task.cancel()
            await task

        work = supervisor.background("work", awaits_a_cancelled_task)
        await until(lambda: begun == 3, "the third start")
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(main())


def test_work_that_fails_all_night_is_still_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause of 2 to the power of 1,024 seconds is too large for a float."""
    monkeypatch.setattr(supervision, "FIRST_PAUSE", 0.0)
    monkeypatch.setattr(supervision.log, "exception", lambda *_: None)

    async def main() -> None:
        supervisor, begun = Supervisor(), 0

        async def fails() -> None:
            nonlocal begun
            begun += 1
            raise RuntimeError

        supervisor.background("work", fails)
        await until(lambda: begun > 1_100 or not supervisor.statuses(), "the failures of a night")
        assert supervisor.statuses()["work"].state is not WorkState.WAITING
        await supervisor.close()

    asyncio.run(main())


def test_an_error_that_a_person_must_mend_ends_the_work() -> None:
    async def main() -> None:
        supervisor = Supervisor()

        async def refuses() -> None:
            raise SettingsError("no key")

        ending = supervisor.background("work", refuses, fatal=(SettingsError,))
        beside = supervisor.background("other", asyncio.Event().wait)  # type: ignore[arg-type]
        with pytest.raises(SettingsError, match="no key"):
            await first_failure(ending, beside)
        await supervisor.close()

    asyncio.run(main())


def test_a_unit_is_logged_when_its_state_changes_and_not_each_time_it_is_tried(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    units = FailingUnits()
    for _ in range(3):
        units.failed("alert", "a1", ValueError("no number"))
    for minute in range(3):
        units.failed("alerts on", "AAPL", FeedUnavailable(f"no answer at {minute}"))
    assert list(units.faults()) == ["alert a1 fails: ValueError; the log has the trace"]
    units.works("alert", "a1")
    units.works("alert", "a1")
    assert list(units.faults()) == []
    units.failed("alert", "a1", ValueError("again"))
    units.keep("alert", {"a2"})
    assert list(units.faults()) == []
    assert [each.getMessage() for each in caplog.records] == [
        "alert a1 fails; the others go on",
        "alerts on AAPL waits: no answer at 0",
        "alert a1 works again",
        "alert a1 fails; the others go on",
    ]


def desk_at(home: Path) -> Desk:
    return Desk(load({"OPENBELL_HOME": str(home), "OPENBELL_FEED": "none", "OPENBELL_TRADE": "1"}))


def test_health_shows_work_that_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "FIRST_PAUSE", 60.0)

    async def main() -> None:
        async with desk_at(tmp_path) as desk:

            async def fails() -> None:
                raise RuntimeError("a bug")

            desk.supervisor.background("halts", fails)
            desk.supervisor.background("gateway", asyncio.Event().wait)  # type: ignore[arg-type]
            await until(lambda: desk.supervisor.statuses()["halts"].state is WorkState.FAILED, "the failure")
            async with asyncio.timeout(PATIENCE):  # a busy machine may take long to open the records
                while list((health := await desk.health.look()).failing) != ["halts"]:
                    pass
            assert health.parts["halts"].text.startswith("failed with RuntimeError; starts again after 60 s")
            assert health.parts["gateway"].text == "answers"
            desk.trading.failing.failed("alert", "a1", ValueError("no number"))
            assert (await desk.health.look()).failing[
                "engine"
            ].text == "alert a1 fails: ValueError; the log has the trace"

    asyncio.run(main())


def test_a_source_of_events_that_fails_is_shown_and_the_others_are_polled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with desk_at(tmp_path) as desk:
            polls = 0

            async def fails(_source: object) -> list[object]:
                nonlocal polls
                polls += 1
                raise RuntimeError("a secret")

            with monkeypatch.context() as patched, desk.hub.listen(BarsClosed, WatchlistChanged) as changed:
                patched.setattr(BarSource, "poll", fails)
                desk.watchlist.watch(["AAPL"])
                while WatchlistChanged() not in await changed.wait(PATIENCE):
                    pass
                await until(lambda: polls > 2, "polls that fail")
                part = (await desk.health.look()).failing["events"]
                assert part.text == "the look for changes of bars fails: RuntimeError; the log has the trace"
                assert traces(caplog) == ["a secret"], "logged once, not ten times a second"
                patched.undo()
                await until(lambda: not desk.supervisor.statuses()["events"].fails, "the source works again")

    asyncio.run(main())


def test_an_alert_that_cannot_be_sent_keeps_no_other_from_being_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        settings = load({"OPENBELL_HOME": str(tmp_path), "OPENBELL_FEED": "sim", "OPENBELL_TRADE": "1"})
        async with Desk(settings) as desk:
            service, sent = desk.connection_subscriptions, list[str]()

            async def sink(subscription: CrossingSubscription, _alert: CrossingAlert) -> None:
                if subscription.id == "sub_1":
                    raise RuntimeError("a bug")
                sent.append(subscription.id)

            for symbol in ("BTC/USD", "ETH/USD"):
                asked = CrossingRequest("local", symbol, Timeframe.M1, "1min", ((CONDITIONS[0], None),), 0)
                await service.subscribe(asked, sink)
            alert: Any = object()
            monkeypatch.setattr(service._watches, "due", lambda _now: [(key, alert) for key in service._connected])
            await until(lambda: _closed(desk) and len(sent) > 2, "the alerts of the other subscription")
            assert set(sent) == {"sub_2"}
            assert not desk.supervisor.statuses()["subscriptions"].fails

    asyncio.run(main())


def test_a_subscription_survives_what_nobody_expected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        settings = load({"OPENBELL_HOME": str(tmp_path), "OPENBELL_FEED": "sim", "OPENBELL_TRADE": "1"})
        async with Desk(settings) as desk:
            service: ConnectionSubscriptions = desk.connection_subscriptions

            async def sink(_subscription: CrossingSubscription, _alert: CrossingAlert) -> None: ...

            asked = CrossingRequest("local", "BTC/USD", Timeframe.M1, "1min", ((CONDITIONS[0], None),), 0)
            await service.subscribe(asked, sink)
            read, reads = desk.signals.read, 0

            async def fails_first(*given: object) -> object:
                nonlocal reads
                reads += 1
                if reads == 1:
                    raise RuntimeError("a bug")
                return await read(*given)  # type: ignore[arg-type]

            monkeypatch.setattr(desk.signals, "read", fails_first)
            await until(lambda: _closed(desk) and reads > 1, "the second read")
            assert set(desk.supervisor.statuses()) >= {"subscriptions"}

    asyncio.run(main())


def _closed(desk: Desk) -> bool:
    """Report that bars have closed; returns True."""
    desk.hub.publish(BarsClosed())
    return True
