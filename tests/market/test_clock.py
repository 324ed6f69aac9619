"""Clocks: parsing and writing times, the system time, a fixed time, a replay."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.market import clock as clock_module
from openbell.market.clock import Clock, FixedClock, ReplayClock, SystemClock, iso, now, parse_time
from openbell.market.errors import InvalidParameter

EXAMPLE = 1758308340.0  # 2025-09-19T18:59:00Z
YEARS = 1e9


class FakeSystemTime:
    """Replaces the system time for `market.clock`: a sleep advances it and returns at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, start: float = 1000.0) -> None:
        self.time = start
        self.slept: list[float] = []
        monkeypatch.setattr(clock_module, "time", SimpleNamespace(monotonic=self.read, time=self.read))
        monkeypatch.setattr(clock_module, "asyncio", SimpleNamespace(sleep=self.sleep, Event=asyncio.Event))

    def read(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.slept.append(seconds)
        self.time += seconds


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> FakeSystemTime:
    return FakeSystemTime(monkeypatch)


class TestParseTime:
    @pytest.mark.parametrize(
        "text",
        [
            "2025-09-19T18:59:00+00:00",
            "2025-09-19T18:59:00Z",
            "2025-09-19T18:59Z",
            "2025-09-19T18:59",
            "2025-09-19 18:59",
            "2025-09-19T14:59:00-04:00",
            "2025-09-20T00:29:00+05:30",
            "20250919T185900Z",
            "  2025-09-19T18:59:00Z\n",
            "1758308340",
            "1758308340.0",
            " 1758308340 ",
        ],
    )
    def test_one_time_in_many_forms(self, text: str) -> None:
        assert parse_time(text) == EXAMPLE

    def test_a_date_is_its_midnight_in_utc(self) -> None:
        assert parse_time("2025-09-19") == datetime(2025, 9, 19, tzinfo=UTC).timestamp()

    def test_fractions_are_kept(self) -> None:
        assert parse_time("1758308340.25") == parse_time("2025-09-19T18:59:00.250Z") == EXAMPLE + 0.25

    @pytest.mark.parametrize(
        "text",
        [
            "",
            " ",
            "now",
            "yesterday",
            "2025",
            "2025-13-01",
            "2025-02-30",
            "2025-09-19T25:00",
            "2025-09-19T18:59:00ZZ",
            "2025-09-19T18:59:00+25:00",
            "19.9.2025",
            "09/19/2025",
            "1758308340000",  # milliseconds
            "12345678",
            "-1758308340",
            "1e9",
            "1_758_308_340",
            "nan",
            "inf",
            "0x68CDA7F4",
            "NaN-NaN-NaN",
            "\x00",
            "9" * 5000,
        ],
    )
    def test_anything_else_is_refused_with_an_example(self, text: str) -> None:
        with pytest.raises(InvalidParameter, match="ISO 8601, for example 2025-09-19T19:00:00Z"):
            parse_time(text)

    @given(
        st.datetimes(
            datetime(1971, 1, 2),  # noqa: DTZ001 - hypothesis adds the zone
            datetime(2200, 1, 1),  # noqa: DTZ001
            timezones=st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
        )
    )
    @settings(deadline=None, max_examples=100)
    def test_what_iso_writes_is_read_back(self, moment: datetime) -> None:
        epoch = parse_time(moment.isoformat())

        assert epoch == moment.timestamp()
        assert parse_time(iso(epoch)) == pytest.approx(epoch, abs=1e-6)

    @given(st.one_of(st.text(max_size=30), st.text("0123456789-:TZ+. W", max_size=30)))
    @settings(deadline=None, max_examples=400)
    def test_any_text_is_a_time_or_refused(self, text: str) -> None:
        try:
            epoch = parse_time(text)
        except InvalidParameter:
            return
        assert isinstance(epoch, float)
        assert iso(epoch)

    @pytest.mark.parametrize("text", ["0001-01-01", "0001-01-01T00:00+14:00", "9999-12-31T23:59:59-14:00"])
    def test_a_time_outside_the_range_of_datetime_is_refused(self, text: str) -> None:
        """Near the limits of datetime, conversion to another time zone overflows."""
        with pytest.raises(InvalidParameter):
            parse_time(text)


class TestIso:
    def test_is_the_contracts_form(self) -> None:
        assert iso(EXAMPLE) == "2025-09-19T18:59:00+00:00"

    def test_now_is_aware(self) -> None:
        moment = now(FixedClock(EXAMPLE))

        assert moment == datetime(2025, 9, 19, 18, 59, tzinfo=UTC)
        assert moment.utcoffset() == timedelta(0)


class TestFixedClock:
    def test_always_shows_the_same_time(self) -> None:
        clock: Clock = FixedClock(EXAMPLE)

        assert [clock.epoch() for _ in range(3)] == [EXAMPLE] * 3
        assert clock.moving is False

    @pytest.mark.parametrize("until", [EXAMPLE, EXAMPLE - 1, 0.0])
    def test_sleep_until_a_past_time_returns_at_once(self, until: float) -> None:
        assert asyncio.run(returns_at_once(FixedClock(EXAMPLE), until))

    def test_sleep_until_a_later_time_never_returns(self) -> None:
        assert not asyncio.run(returns_at_once(FixedClock(EXAMPLE), EXAMPLE + 0.001))


async def returns_at_once(clock: Clock, until: float) -> bool:
    """Returns True if `sleep_until` returns without waiting."""
    waiting = asyncio.ensure_future(clock.sleep_until(until))
    for _ in range(5):
        await asyncio.sleep(0)
    done = waiting.done()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    return done


class TestReplayClock:
    def test_runs_from_its_start_at_its_speed(self, system: FakeSystemTime) -> None:
        system.time = EXAMPLE + YEARS
        clock: Clock = ReplayClock(EXAMPLE, 60.0)
        assert clock.epoch() == EXAMPLE
        assert clock.moving is True

        system.time += 2.5

        assert clock.epoch() == EXAMPLE + 150.0

    @pytest.mark.parametrize("speed", [0.5, 1.0, 60.0, 1e6])
    def test_waits_the_scaled_time(self, system: FakeSystemTime, speed: float) -> None:
        system.time = EXAMPLE + YEARS
        clock = ReplayClock(EXAMPLE, speed)

        asyncio.run(clock.sleep_until(EXAMPLE + 120.0))

        assert clock.epoch() >= EXAMPLE + 120.0 or clock.epoch() == pytest.approx(EXAMPLE + 120.0)
        assert sum(system.slept) == pytest.approx(120.0 / speed, rel=1e-6)

    def test_sleep_until_a_past_time_returns_at_once(self, system: FakeSystemTime) -> None:
        system.time = EXAMPLE + YEARS
        asyncio.run(ReplayClock(EXAMPLE, 60.0).sleep_until(EXAMPLE - 1.0))

        assert system.slept == []

    def test_stops_when_it_reaches_the_present(self, system: FakeSystemTime) -> None:
        system.time = EXAMPLE + 60.0
        clock = ReplayClock(EXAMPLE, 60.0)

        system.time += 30.0

        assert clock.epoch() == EXAMPLE + 90.0
        assert clock.moving is False
        system.time += 1000.0
        assert clock.epoch() == EXAMPLE + 90.0

    @pytest.mark.parametrize("speed", [0.0, -1.0, float("nan"), float("inf")])
    def test_a_speed_that_is_not_positive_and_finite_is_refused(self, speed: float) -> None:
        with pytest.raises(InvalidParameter, match="speed"):
            ReplayClock(EXAMPLE, speed)


class TestSystemClock:
    def test_shows_the_system_time(self, system: FakeSystemTime) -> None:
        clock: Clock = SystemClock()
        system.time = EXAMPLE

        assert clock.epoch() == EXAMPLE
        assert clock.moving is True

    def test_waits_in_steps_of_at_most_5_seconds(self, system: FakeSystemTime) -> None:
        clock = SystemClock()

        asyncio.run(clock.sleep_until(system.time + 12.0))

        assert system.slept == [5.0, 5.0, 2.0]
