"""A spec that is written can be read again, and is the same."""

from __future__ import annotations

import json
import random

import pytest

from openbell.strategies.errors import SpecRefused
from openbell.strategies.library import canonical
from openbell.strategies.reading import read_spec
from openbell.strategies.spec import Spec
from openbell.strategies.writing import write_spec
from tests.strategies.specs import crossover, random_spec

STOPS = [
    {"type": "STOP_LOSS", "params": {"percentage": "${loss}"}},
    {"type": "STOP_GAIN", "params": {"percentage": 7.5}},
]
CROSSES = crossover()["exitConditions"][0]
FALLS = {"type": "IS_FALLING", "indicator": "ema", "params": {"barCount": "${falling}"}}


def again(spec: Spec) -> Spec:
    return read_spec(json.loads(json.dumps(write_spec(spec), allow_nan=False)))


@pytest.mark.parametrize("name", canonical())
def test_canonical_strategies(name: str) -> None:
    assert again(canonical()[name]) == canonical()[name]


def test_random_specs() -> None:
    read = 0
    for seed in range(200):
        try:
            spec = read_spec(random_spec(random.Random(seed)))
        except SpecRefused:  # its conditions cannot hold
            continue
        assert again(spec) == spec
        read += 1
    assert read > 100


@pytest.mark.parametrize(
    "exits",
    [
        STOPS[:1],
        [{"type": "OR", "conditions": STOPS}],
        [{"type": "OR", "conditions": [CROSSES, *STOPS]}],
        [{"type": "OR", "conditions": [CROSSES, FALLS, *STOPS]}],
        [{"type": "OR", "conditions": [{"type": "OR", "conditions": [CROSSES, FALLS]}, *STOPS]}],
        [{"type": "OR", "conditions": [{"type": "AND", "conditions": [CROSSES, FALLS]}, *STOPS]}],
        [CROSSES, FALLS],
        [{"type": "OR", "conditions": [CROSSES, {"type": "NOT", "conditions": [FALLS]}]}],
    ],
    ids=str,
)
def test_exits_with_and_without_stops(exits: list[dict[str, object]]) -> None:
    raw = crossover()
    raw["side"], raw["exitConditions"] = "SHORT", exits
    for name, kind, most in (("loss", "DOUBLE", 50), ("falling", "INTEGER", 9)):
        if f"${{{name}}}" in str(exits):
            raw["parameters"].append({"name": name, "type": kind, "min": 1, "max": most, "defaultValue": 2})
    spec = read_spec(raw)
    assert again(spec) == spec
