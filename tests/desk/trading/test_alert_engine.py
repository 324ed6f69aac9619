"""The alert engine: which alerts fire at which bar, however often it runs and however bars arrive."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from openbell.desk.alerts.service import Condition
from openbell.desk.desk import Desk
from openbell.desk.settings import load
from openbell.indicators.evaluation import IndicatorRequest, evaluate
from openbell.indicators.registry import all_indicators
from openbell.market.bars import MINUTE, Bars, bucket_bounds, make
from openbell.market.clock import iso
from openbell.market.errors import InvalidParameter, UnknownSymbol
from openbell.market.instruments import parse
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.timeframes import SHORT, Timeframe
from openbell.stores.port import Span
from openbell.trading.alerts import Alert, Type
from tests.clocks import HandClock
from tests.counts import runs

SOURCE = Source(Origin.IMPORTED, "import")
START = 1_758_240_000  # a midnight
ME = "local"
SYMBOLS = ["BTC/USD", "ETH/USD", "AAPL"]
SEEDS = runs(3, soak=60)


def desk_at(home: Path, clock: HandClock) -> Desk:
    desk = Desk(load({"OPENBELL_HOME": str(home), "OPENBELL_FEED": "none", "OPENBELL_TRADE": "1"}))
    desk.clock = clock
    return desk


def walk(symbol: str, chance: random.Random, minutes: int) -> Bars:
    """Returns a random walk around 100; some minutes have no bar."""
    price, rows = 100.0, []
    for minute in range(minutes):
        opened, price = price, round(price * (1 + chance.gauss(0, 0.002)), 2)
        high, low = max(opened, price) + chance.random() / 5, min(opened, price) - chance.random() / 5
        if chance.random() < 0.9:
            rows.append((START + minute * MINUTE, opened, high, low, price, 10.0))
    return make(parse(symbol), Timeframe.M1, *zip(*rows, strict=True))


def expected(alert: Alert, bars: Bars, until: float) -> tuple[float, float] | None:
    """Returns end and value of the first minute that opened after the alert was set and reaches its price."""
    for index in range(len(bars)):
        value = bars.high[index] if alert.type is Type.PRICE_ABOVE else bars.low[index]
        level = float(alert.threshold or 0)
        reached = value >= level if alert.type is Type.PRICE_ABOVE else value <= level
        if alert.set_at <= bars.time[index] <= until - MINUTE and reached:
            return float(bars.time[index] + MINUTE), float(value)
    return None


@dataclass
class Scene:
    """A desk whose bars arrive in one of several ways, while alerts are set and engines start and end."""

    home: Path
    chance: random.Random
    ahead: bool
    """Whether all bars are stored from the beginning, as in a replay."""

    async def play(self, minutes: int) -> tuple[list[Alert], dict[str, Bars], float]:
        clock = HandClock(float(START + 600 * MINUTE))
        all_bars = {symbol: walk(symbol, self.chance, 600 + minutes) for symbol in SYMBOLS}
        desk = desk_at(self.home, clock)
        for bars in all_bars.values():
            desk.store.write([bars if self.ahead else bars.between(0, clock.epoch())], SOURCE)
        alerts: list[Alert] = []
        while clock.epoch() < START + (600 + minutes) * MINUTE:
            count = self.chance.choice((0, 0, 1, 3))
            alerts += [await self._set(desk, all_bars, clock.epoch()) for _ in range(count)]
            before = clock.epoch()
            clock.advance(self.chance.choice((7.0, 61.0, 60.0, 200.0, 1900.0)))
            if not self.ahead:
                self._arrive(desk, all_bars, before, clock.epoch())
            if self.chance.random() < 0.7:
                await desk.trading.engine.step(None)
            if self.chance.random() < 0.15:
                await desk.trading.close()
                desk = desk_at(self.home, clock)
        await desk.trading.engine.step(None)
        await desk.trading.close()
        return alerts, all_bars, clock.epoch() // MINUTE * MINUTE

    async def _set(self, desk: Desk, all_bars: dict[str, Bars], now: float) -> Alert:
        symbol = self.chance.choice(SYMBOLS)
        last = float(all_bars[symbol].between(0, now - MINUTE + 1).close[-1])
        kind = self.chance.choice((Type.PRICE_ABOVE, Type.PRICE_BELOW))
        level = round(last * (1 + self.chance.uniform(-0.004, 0.015) * (1 if kind is Type.PRICE_ABOVE else -1)), 2)
        interval = self.chance.choice(("1m", "1m", "5m", "1h", "4h", "1d"))
        return await desk.trading.alerts.set(ME, symbol, interval, Condition(kind, level))

    @staticmethod
    def _arrive(desk: Desk, all_bars: dict[str, Bars], before: float, now: float) -> None:
        span = Span(int(before // MINUTE * MINUTE), int(now // MINUTE * MINUTE))
        parts = [bars.between(span.start, span.end) for bars in all_bars.values()]
        desk.store.write([part for part in parts if len(part)], SOURCE)


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_exactly_the_alerts_that_came_true_fire_each_at_its_bar(tmp_path: Path, seed: int, ahead: bool) -> None:
    scene = Scene(tmp_path, random.Random(seed), ahead)
    alerts, bars, until = asyncio.run(scene.play(240))
    wanted = {alert.id: expected(alert, bars[alert.symbol], until) for alert in alerts}
    told = asyncio.run(notifications(tmp_path, until))
    assert len(told) == len({each["alert_id"] for each in told})
    found = {each["alert_id"]: (each["triggered_at"], each["value"]) for each in told}
    assert found == {key: (iso(value[0]), value[1]) for key, value in wanted.items() if value}
    assert any(wanted.values())
    assert not all(wanted.values())


async def notifications(home: Path, now: float) -> list[dict[str, Any]]:
    desk = desk_at(home, HandClock(now + 1))
    found, _ = await desk.trading.inbox.look(ME, limit=1000)
    await desk.trading.close()
    return [each.body for each in found]


def flat(symbol: str, closes: list[float], start: int = START) -> Bars:
    values = np.asarray(closes)
    times = start + MINUTE * np.arange(len(values))
    return make(parse(symbol), Timeframe.M1, times, values, values, values, values, np.ones(len(values)))


@pytest.mark.parametrize("interval", list(SHORT))
def test_a_price_alert_fires_within_a_minute_whatever_its_interval(tmp_path: Path, interval: str) -> None:
    """Set in the middle of a minute that reaches the price: the next minute fires it, not that one."""
    bars = flat("BTC/USD", [100.0] * 10 + [200.0] + [150.0] * 5)

    async def play() -> tuple[float, list[dict[str, Any]]]:
        clock = HandClock(START + 10.5 * MINUTE)
        desk = desk_at(tmp_path, clock)
        desk.store.write([bars.between(0, START + 10 * MINUTE)], SOURCE)
        await desk.trading.alerts.set(ME, "BTC/USD", interval, Condition(Type.PRICE_ABOVE, 150.0))
        told: list[dict[str, Any]] = []
        while not told and clock.epoch() < START + 14 * MINUTE:
            minute = int(clock.epoch() // MINUTE * MINUTE)
            desk.store.write([bars.between(minute, minute + MINUTE)], SOURCE)
            clock.advance(minute + MINUTE + 1 - clock.epoch())
            await desk.trading.engine.step(None)
            told = [each.body for each in (await desk.trading.inbox.look(ME))[0]]
        await desk.trading.close()
        return clock.epoch(), told

    at, (told,) = asyncio.run(play())
    assert at == START + 12 * MINUTE + 1
    assert (told["interval"], told["value"]) == (interval, 150.0)
    assert told["triggered_at"] == iso(START + 12 * MINUTE)


def test_a_signal_fires_at_the_bar_that_confirms_it_and_no_stale_one_does(tmp_path: Path) -> None:
    """RSI is below 30 long before the alert is set: only later signals count."""
    falling = [200 - minute * 0.5 for minute in range(60)]
    rising = [falling[-1] + minute for minute in range(1, 60)]
    again = [rising[-1] - minute for minute in range(1, 60)]
    bars = flat("BTC/USD", falling + rising + again)

    async def play() -> list[dict[str, Any]]:
        clock = HandClock(float(START + 90 * MINUTE))
        desk = desk_at(tmp_path, clock)
        desk.store.write([bars.between(0, clock.epoch())], SOURCE)
        wanted = Condition(Type.INDICATOR_SIGNAL, None, "rsi", "rsi_oversold")
        await desk.trading.alerts.set(ME, "BTCUSD", "1m", wanted)
        await desk.trading.engine.step(None)
        assert await desk.trading.inbox.look(ME) == ([], 0)
        while clock.epoch() < START + 177 * MINUTE:
            before = int(clock.epoch())
            clock.advance(MINUTE)
            desk.store.write([bars.between(before, clock.epoch())], SOURCE)
            await desk.trading.engine.step(None)
        found, _ = await desk.trading.inbox.look(ME)
        await desk.trading.close()
        return [each.body for each in found]

    (told,) = asyncio.run(play())
    assert told["symbol"] == "BTCUSD"
    assert told["condition"] == {"type": "indicator_signal", "indicator": "rsi", "signal": "rsi_oversold"}
    assert told["value"] < 30
    assert told["triggered_at"] > iso(START + 120 * MINUTE)


EMITTING = [each for each in all_indicators().values() if each.signals and not each.needs]
REQUESTS = [IndicatorRequest(each.name, each, each.settings()) for each in EMITTING]


def first_signals(bars: Bars, since: float) -> dict[tuple[str, str], tuple[float, float]]:
    """Returns end and value of the first signal with each label on bars that closed after a time, from arrays."""
    ends = bucket_bounds(bars.instrument, bars.timeframe, bars.time)[1]
    found: dict[tuple[str, str], tuple[float, float]] = {}
    for each in evaluate(bars, len(bars), REQUESTS, {}, None):
        for signal in each.channels.signals:
            if ends[signal.index] > since:
                found.setdefault((each.request.key, signal.label), (float(ends[signal.index]), signal.value))
    return found


@pytest.mark.parametrize(("symbol", "interval"), [("BTC/USD", "1m"), ("BTC/USD", "15m"), ("AAPL", "1m")])
def test_every_signal_of_every_indicator_fires_its_alert_once(tmp_path: Path, symbol: str, interval: str) -> None:
    """In steps of one or many bars, and after earlier bars were corrected."""
    chance = random.Random(f"{symbol} {interval}")
    bars = walk(symbol, chance, 3000)

    async def play() -> tuple[dict[str, Any], dict[str, Any]]:
        clock = HandClock(float(START + 2000 * MINUTE))
        desk = desk_at(tmp_path, clock)
        desk.store.write([bars.between(0, clock.epoch())], SOURCE)
        waiting: dict[tuple[str, str], str] = {}
        for indicator in EMITTING:
            for label in indicator.labels:
                wanted = Condition(Type.INDICATOR_SIGNAL, None, indicator.name, label)
                waiting[indicator.name, label] = (await desk.trading.alerts.set(ME, symbol, interval, wanted)).id
        wanted_firings: dict[str, Any] = {}
        seen = clock.epoch()
        while clock.epoch() < START + 2900 * MINUTE:
            before = int(clock.epoch())
            clock.advance(chance.choice((1, 1, 5, 17, 40)) * MINUTE)
            desk.store.write([bars.between(before, clock.epoch())], SOURCE)
            if chance.random() < 0.15:
                at = before - chance.randrange(50, 400) * MINUTE
                corrected = bars.between(at, at + 3 * MINUTE)
                desk.store.write([replace(corrected, volume=corrected.volume + 1.0)], SOURCE)
            await desk.trading.engine.step(None)
            newest = await desk.bars.latest(parse(symbol), SHORT[interval])
            for key, (end, value) in first_signals(newest, seen).items():
                if key in waiting:
                    wanted_firings[waiting.pop(key)] = (iso(end), pytest.approx(value, rel=1e-9))
            stored = desk.store.tail(Series(parse(symbol)), 1, int(clock.epoch()))
            seen = float(stored.time[-1] + MINUTE)
        found, _ = await desk.trading.inbox.look(ME, limit=1000)
        await desk.trading.close()
        told = [each.body for each in found]
        assert len(told) == len({each["alert_id"] for each in told})
        return {each["alert_id"]: (each["triggered_at"], each["value"]) for each in told}, wanted_firings

    told, expected_firings = asyncio.run(play())
    assert told == expected_firings
    assert len(told) > 25


@pytest.mark.parametrize(
    ("symbol", "interval", "condition"),
    [
        ("ZZZZ", "1m", Condition(Type.PRICE_ABOVE, 1.0)),
        ("BTC/USD", "1m", Condition(Type.PRICE_ABOVE, 0.0)),
        ("BTC/USD", "1m", Condition(Type.INDICATOR_SIGNAL, None, "nonsense", "buy")),
        ("BTC/USD", "1m", Condition(Type.INDICATOR_SIGNAL, None, "rsi", "gold_buy")),
    ],
)
def test_nonsense_is_refused(tmp_path: Path, symbol: str, interval: str, condition: Condition) -> None:
    async def play() -> None:
        desk = desk_at(tmp_path, HandClock(float(START + 90 * MINUTE)))
        desk.store.write([flat("BTC/USD", [100.0] * 60)], SOURCE)
        with pytest.raises((InvalidParameter, UnknownSymbol)):
            await desk.trading.alerts.set(ME, symbol, interval, condition)
        assert await desk.trading.alerts.listing(ME) == []
        await desk.trading.close()

    asyncio.run(play())
