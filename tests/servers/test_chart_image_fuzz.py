"""Random and broken chart configs: each is a chart, a warning or a typed error, in bounded time."""

from __future__ import annotations

import copy
import json
import random
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from openbell.charts.config.choices import INTERVALS, PRESETS, SCALES, STYLES
from openbell.charts.config.model import KINDS, TYPES, Coordinate
from openbell.charts.config.reading import read_config
from openbell.charts.config.vendor_form import vendor_body
from openbell.charts.studies.catalogue import all_studies
from openbell.charts.studies.study import Input
from openbell.protocol.dialects import Reply
from tests.counts import runs
from tests.servers.chart_image_servers import AS_OF, BITCOIN
from tests.servers.desks import Bench, awaited, bench_as_found

CONFIGS = runs(200, soak=10_000)
NOW = datetime.fromisoformat(AS_OF)
MOST_SECONDS = 0.2
"""Processor time of one validation."""
_HOSTILE: list[Any] = [
    None, True, False, 0, -1, 1, 0.5, -0.0, 1e-320, 1e308, -1e308, float("inf"), float("nan"), 10**30, 10**400, -(10**400),
    "", " ", "1", "null", "NaN", "x" * 900, "\x00", "\ud83d\ude80", "\u202e", "İ", "<script>", "%s%n", "../../etc", "1h\n",
    [], {}, [[]], [{}], {"": ""}, ["RSI"], {"from": "2026-01-01", "to": "2026-01-01"}, {"from": 1, "to": []},
    "0001-01-01/9999-12-31", "9999-12-31T23:59:59-23:59", "2026-02-30", "99999D", "0D", "-7D", "1e3D", "１Ｄ",
]  # fmt: skip
_FIELDS: dict[str, list[Any]] = {
    "symbol": ["BINANCE:BTCUSDT", "NASDAQ:AAPL", "FX:EURUSD", "COINBASE:ETHUSD", "NYSE:NOPE", "BTCUSDT", "binance:btcusdt"],
    "interval": [*INTERVALS, "2w", "1d"],
    "range": [*PRESETS, "7D", "4H", "30MIN", "18M", "2026-01-02/2026-01-05", {"from": "2026-01-02", "to": "2026-01-03"}],
    "theme": ["light", "dark", "Dark"],
    "style": [*STYLES, "renko"],
    "scale": [*SCALES],
    "session": ["regular", "extended"],
    "timezone": ["Etc/UTC", "America/New_York", "Asia/Kathmandu", "Mars"],
    "format": ["png", "jpeg", "gif"],
    "shiftLeft": [0, 5, 500],
    "shiftRight": [0, 5, 500],
    "watermark": ["hello", "", "x" * 300],
    "watermarkSize": [1, 64, 500, 501],
    "watermarkOpacity": [0, 0.3, 1, 2],
    "override": [
        {},
        {"showLegend": False, "priceRange": {"from": 1, "to": 2}},
        {"style": {"candleStyle.upColor": "rgb(8,153,129)"}, "scalesFontSize": 10**9},
    ],
}  # fmt: skip


class Fuzz:
    """Makes configs of one seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def config(self) -> dict[str, Any]:
        """Returns a config that may be valid, or one with a few mutations."""
        chance = self._chance
        found = copy.deepcopy({**BITCOIN, "range": "2D"})
        for name in chance.sample(sorted(_FIELDS), chance.randint(0, 4)):
            found[name] = copy.deepcopy(chance.choice(_FIELDS[name]))
        if chance.random() < 0.6:
            found["studies"] = [self._study() for _ in range(chance.choice([1, 1, 2, 3, 8]))]
        if chance.random() < 0.5:
            found["drawings"] = [self._drawing() for _ in range(chance.choice([1, 1, 2, 4]))]
        for _ in range(chance.choice([0, 0, 0, 1, 2, 6])):
            self._mutate(found)
        return found

    def _study(self) -> Any:
        chance = self._chance
        study = chance.choice(list(all_studies().values()))
        inputs = {each.name: self._input(each) for each in study.inputs if chance.random() < 0.5}
        if chance.random() < 0.3:
            keys = {each.name: each.key for each in study.inputs}
            return {"name": study.title, "input": {keys[name]: value for name, value in inputs.items()}}
        made: dict[str, Any] = {"name": study.name, "inputs": inputs}
        if chance.random() < 0.3:
            made |= {"forceOverlay": chance.random() < 0.5, "override": {"Plot.color": "rgba(1,2,3,0.5)", "x": 1}}
        return made

    def _input(self, asked: Input) -> Any:
        chance = self._chance
        if asked.choices:
            return chance.choice(asked.choices)
        if isinstance(asked.default, bool):
            return chance.random() < 0.5
        edges = [asked.low, asked.high, asked.default, asked.low - 1, asked.high + 1, asked.low + 1]
        return chance.choice([*edges[:3], *edges])

    def _drawing(self) -> Any:
        chance = self._chance
        kind = chance.choice(list(KINDS.values()))
        values: dict[Coordinate, list[Any]] = {
            Coordinate.PRICE: [1e-9, 1, 90_000, 91_234.5, 1e300],
            Coordinate.TIME: ["2026-01-06T12:00:00Z", "2026-01-07", "1900-01-01", "0001-01-01", "9999-12-31T23:59:59Z"],
            Coordinate.TEXT: ["a note", "", "two\nlines", "x" * 500, "\u202e🚀"],
        }
        named = [name for name in kind.coordinates if name in kind.required or chance.random() < 0.5]
        place = {name: chance.choice(values[TYPES[name]]) for name in named}
        if chance.random() < 0.3:
            return {"name": kind.name, "input": place, "zOrder": "bottom", "override": {"lineWidth": 10**9}}
        return {"type": kind.name, "coordinates": place, "style": {"lineColor": "red", "transparency": -5}}

    def _mutate(self, config: dict[str, Any]) -> None:
        """Changes one random place: sets, removes, renames or repeats."""
        chance = self._chance
        place, key = chance.choice(list(_places(config)))
        change = chance.random()
        if change < 0.7:
            place[key] = copy.deepcopy(chance.choice(_HOSTILE))
        elif change < 0.8:
            del place[key]
        elif isinstance(place, dict):
            place[str(chance.choice(_HOSTILE))[:100]] = place[key] if change < 0.9 else place.pop(key)
        else:
            place.extend(place[:1] * chance.choice([1, 60]))


def _places(value: Any) -> Any:
    """Yields each list or object within a config with each of its keys."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


def internal(reply: Reply) -> bool:
    """Returns True for the error of a bug."""
    return bool(reply.is_error) and "Internal" in str((reply.payload or {}).get("error"))


async def validated(bench: Bench, config: dict[str, Any]) -> tuple[Reply, float]:
    """Returns the reply of validate_chart_config, and its processor time in seconds."""
    began = time.process_time()
    reply = await bench.reply("chart-image", "validate_chart_config", {"config": config})
    return reply, time.process_time() - began


@awaited
async def test_any_config_is_a_chart_a_warning_or_a_typed_error(tmp_path: Path) -> None:
    fuzz, drawn, refused = Fuzz(20_261_118), 0, 0
    async with bench_as_found(tmp_path, AS_OF, FEED="sim", TRADE="0") as bench:
        await validated(bench, {**BITCOIN, "timezone": "Mars", "studies": ["Nothing"]})  # loads the tables
        for number in range(CONFIGS):
            config = fuzz.config()
            if any(isinstance(config.get(side), int | float) and config[side] > 500 for side in ("width", "height")):
                config |= {"width": 400, "height": 300}  # large pictures take time and say no more
            where = f"{number}: {config}"
            checked, seconds = await validated(bench, copy.deepcopy(config))
            assert not checked.is_error, where
            assert seconds < MOST_SECONDS, where
            assert checked.payload is not None
            errors = [each for each in checked.payload["errors"] if each["severity"] == "error"]
            assert checked.payload["valid"] == (not errors), where
            assert all(each["message"] for each in checked.payload["errors"]), where
            if (read := read_config(config).config) is not None:
                assert json.dumps(vendor_body(read, NOW), allow_nan=False), where
            made = await bench.reply("chart-image", "generate_chart_image", {"config": config})
            assert not internal(made), where
            if errors:
                assert made.is_error, where
                assert made.payload is not None
                assert made.payload["error"] == "Invalid configuration", where
                assert [each["field"] for each in made.payload["details"]] == [each["field"] for each in errors], where
            refused += bool(errors)
            drawn += not made.is_error
    assert drawn > CONFIGS // 10
    assert refused > CONFIGS // 10


def _hostile_configs() -> dict[str, dict[str, Any]]:
    """Configs of up to a megabyte that have as much as possible of one kind of mistake."""
    many = range(2000)
    deep: dict[str, Any] = {}
    for _ in range(400):
        deep = {"a": deep}
    return {
        "unknown fields": {**BITCOIN, **{f"symbo{at}": 1 for at in range(20_000)}},
        "unknown studies": {**BITCOIN, "studies": [{"name": f"Moving Averag {at} Weightd"} for at in range(50)]},
        "unknown fields of studies": {**BITCOIN, "studies": [{"name": "RSI", **{f"inputz{at}": 1 for at in many}}] * 9},
        "unknown inputs": {**BITCOIN, "studies": [{"name": "MA", "inputs": {f"lengt{at}": 1 for at in many}}] * 9},
        "wrong inputs": {**BITCOIN, "studies": [{"name": "RSI", "inputs": {"length": ["x"] * 4000}}] * 50},
        "unknown coordinates": {
            **BITCOIN,
            "drawings": [{"type": "Trend Line", "coordinates": {f"startPric{at}": 1 for at in many}}] * 9,
        },
        "too many studies": {**BITCOIN, "studies": ["RSI"] * 100_000},
        "long texts": {**BITCOIN, **dict.fromkeys(("symbol", "interval", "range", "theme", "timezone"), "x" * 200_000)},
        "a long name": {**BITCOIN, "x" * 1_000_000: 1},
        "deep nesting": {**BITCOIN, "override": deep, "studies": [{"name": "RSI", "override": deep}] * 50},
        "equal studies": {**BITCOIN, "studies": [{"name": "RSI", "override": {f"k{at}": at for at in many}}] * 50},
    }


@awaited
async def test_a_huge_config_is_validated_in_time_and_its_answer_is_short(tmp_path: Path) -> None:
    async with bench_as_found(tmp_path, AS_OF, FEED="sim", TRADE="0") as bench:
        await validated(bench, {**BITCOIN, "timezone": "Mars", "studies": ["Nothing"]})
        for name, config in _hostile_configs().items():
            reply, seconds = await validated(bench, config)
            assert seconds < MOST_SECONDS, f"{name}: {seconds:.2f} s"
            assert not internal(reply), name
            if not reply.is_error:
                assert reply.payload is not None
                assert len(reply.payload["errors"]) <= 105, name
            assert len(str(reply.payload)) < 30_000, name
