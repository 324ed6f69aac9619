"""Specs that are refused: each problem names the place and what to do, and no input makes it hang or fail otherwise."""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from openbell.strategies.compiled import compiled
from openbell.strategies.errors import ProblemKind, SpecRefused
from openbell.strategies.evaluation import evaluate
from openbell.strategies.reading import read_spec
from openbell.strategies.spec import ConditionType, PositionSide
from openbell.strategies.yaml_text import read_yaml
from tests.counts import runs
from tests.strategies.specs import Raw, crossover, random_spec, walk

HOSTILE = runs(1_500, soak=10_000)


def problems(raw: object) -> list[tuple[str, str]]:
    with pytest.raises(SpecRefused) as caught:
        read_spec(raw)
    return [(each.kind.value, str(each)) for each in caught.value.problems]


def changed(**keys: Any) -> Raw:
    return {**crossover(), **keys}


def test_a_spec_in_the_contracts_form_is_read() -> None:
    spec = read_spec(crossover())
    assert (spec.name, spec.side) == ("SMA_EMA_CROSSOVER", PositionSide.LONG)
    assert [use.indicator for use in spec.indicators] == ["sma", "ema_line"], "EMA is the single line"
    assert [str(use.settings["length"]) for use in spec.indicators] == ["${smaPeriod}", "${emaPeriod}"]
    assert compiled(spec, {"smaPeriod": 7}).parameters == {"smaPeriod": 7, "emaPeriod": 9}


def test_keys_may_be_written_with_underscores() -> None:
    raw = crossover()
    raw["entry_conditions"], raw["exit_conditions"] = raw.pop("entryConditions"), raw.pop("exitConditions")
    for each in raw["parameters"]:
        each["default_value"] = each.pop("defaultValue")
    assert read_spec(raw) == read_spec(crossover())


@pytest.mark.parametrize(
    ("raw", "kind", "text"),
    [
        (changed(name=""), ProblemKind.NAME, "name: must be a text of 3 to 64 characters"),
        (changed(name="x'; DROP TABLE"), ProblemKind.NAME, "name: must begin with a letter"),
        (changed(indicators=[]), ProblemKind.INDICATORS, "indicators: must be a list of 1 to 24"),
        (
            changed(indicators=[{"id": "a", "type": "RSII"}]),
            ProblemKind.INDICATORS,
            "indicators[0].type: no indicator 'RSII'; did you mean 'rsi'?",
        ),
        (
            changed(indicators=[{"id": "close", "type": "rsi"}]),
            ProblemKind.INDICATORS,
            "indicators[0].id: must be a name of letters, digits and _ other than open",
        ),
        (
            changed(indicators=[{"id": "a", "type": "funding"}]),
            ProblemKind.INDICATORS,
            "indicators[0].type: funding needs data beyond bars",
        ),
        (
            changed(indicators=[{"id": "a", "type": "rsi", "params": {"lenght": 3}}]),
            ProblemKind.INDICATORS,
            "indicators[0].params.lenght: rsi has no parameter 'lenght'; did you mean 'length'?",
        ),
        (
            changed(indicators=[{"id": "a", "type": "rsi", "params": {"length": 0}}]),
            ProblemKind.INDICATORS,
            "indicators[0].params.length: length must be between 1 and 500, not 0",
        ),
        (
            changed(indicators=[{"id": "a", "type": "rsi", "params": {"length": "${nope}"}}]),
            ProblemKind.INDICATORS,
            "indicators[0].params.length: no parameter 'nope'",
        ),
        (
            changed(
                indicators=[{"id": "a", "type": "sma", "input": "b"}, {"id": "b", "type": "sma", "input": "a"}],
                parameters=[],
            ),
            ProblemKind.INDICATORS,
            "indicators[0].input: is computed from itself",
        ),
        (
            changed(entryConditions=[{"type": "CROSSES", "indicator": "sma"}]),
            ProblemKind.CONDITIONS,
            "entryConditions[0].type: no condition 'CROSSES'; did you mean 'CROSSED_UP'?",
        ),
        (
            changed(entryConditions=[{"type": "OVER", "indicator": "smaa", "params": {"value": 1}}]),
            ProblemKind.CONDITIONS,
            "entryConditions[0].indicator: no indicator 'smaa'; did you mean 'sma'?",
        ),
        (
            changed(entryConditions=[{"type": "OVER", "indicator": "sma"}]),
            ProblemKind.CONDITIONS,
            "entryConditions[0].params: OVER needs what it is compared with",
        ),
        (
            changed(entryConditions=[{"type": "STOP_LOSS", "params": {"percentage": 3}}]),
            ProblemKind.CONDITIONS,
            "entryConditions[0]: a stop cannot open a position",
        ),
        (
            changed(
                exitConditions=[
                    {"type": "UNDER", "indicator": "sma", "params": {"other": "ema"}},
                    {"type": "STOP_LOSS", "params": {"percentage": 3}},
                ]
            ),
            ProblemKind.CONDITIONS,
            "exitConditions[1]: a stop closes by itself: write it alone, or in one OR with the other exits",
        ),
        (
            changed(entryConditions=[{"type": "IS_RISING", "indicator": "sma", "params": {"barCount": 0}}]),
            ProblemKind.CONDITIONS,
            "entryConditions[0].params.barCount: must be a whole number from 1 to 500",
        ),
        (
            changed(entryConditions=[{"type": "OVER", "indicator": "sma", "params": {"other": "sma"}}]),
            ProblemKind.CONDITIONS,
            "entryConditions[0].params.other: sma.sma is compared with itself",
        ),
        (
            changed(exitConditions=[{"type": "STOP_LOSS", "params": {"points": 3}}]),
            ProblemKind.CONDITIONS,
            "exitConditions[0].params.points: is not known here",
        ),
        (
            changed(exitConditions=[{"type": "STOP_LOSS", "params": {"percentage": "much"}}]),
            ProblemKind.CONDITIONS,
            "exitConditions[0].params.percentage: ",
        ),
        (
            changed(exitConditions=[{"type": "STOP_LOSS", "params": {"percentage": 0}}]),
            ProblemKind.CONDITIONS,
            "exitConditions[0].params.percentage: must be more than 0 and less than",
        ),
        (
            changed(
                exitConditions=[
                    {
                        "type": "OR",
                        "conditions": [{"type": "STOP_LOSS", "params": {"percentage": each}} for each in (3, 4)],
                    }
                ]
            ),
            ProblemKind.CONDITIONS,
            "exitConditions[0].conditions[1]: a second STOP_LOSS",
        ),
        (
            changed(indicators=[{"id": "a", "type": "rsi", "params": {"length": 7, "period": 8}}]),
            ProblemKind.INDICATORS,
            "indicators[0].params.period: sets length a second time",
        ),
        (
            changed(indicators=[{"id": "a", "type": "rsi", "params": {"length": 7.5}}]),
            ProblemKind.INDICATORS,
            "indicators[0].params.length: must be a whole number",
        ),
        (
            changed(indicators=[{"id": "a", "type": "rsi", "params": 7}]),
            ProblemKind.INDICATORS,
            "indicators[0].params: must be an object, not 7",
        ),
        (
            changed(exitConditions=[]),
            ProblemKind.CONDITIONS,
            "exitConditions: must be a list with at least one condition",
        ),
        (
            changed(parameters=[{"name": "p", "type": "INTEGER", "min": 5, "max": 3, "defaultValue": 4}]),
            ProblemKind.SCHEMA,
            "parameters[0]: min ≤ defaultValue ≤ max does not hold: 5, 4, 3",
        ),
        (changed(parameters="all"), ProblemKind.SCHEMA, "parameters: must be a list of at most 16"),
        (changed(code="import os"), ProblemKind.SCHEMA, "'code': is not a key of a spec"),
        (changed(side="BOTH"), ProblemKind.SCHEMA, "side: must be LONG or SHORT"),
    ],
)
def test_a_problem_names_its_place_and_the_fix(raw: Raw, kind: ProblemKind, text: str) -> None:
    found = problems(raw)
    assert any(code == kind.value and shown.startswith(text) for code, shown in found), found


def test_a_range_of_a_parameter_must_fit_the_indicator() -> None:
    raw = crossover()
    raw["parameters"][0]["max"] = 5000
    [(code, shown)] = problems(raw)
    assert (code, shown.startswith("indicators[0].params.period: length must be between")) == (
        ProblemKind.INDICATORS,
        True,
    )
    raw = crossover()
    raw["parameters"][0]["type"] = "DOUBLE"
    assert problems(raw)[0][1].startswith(
        "indicators[0].params.period: must be a whole number, so its parameter must be INTEGER"
    )


def test_bands_need_the_name_of_a_line_and_a_line_that_looks_ahead_is_refused() -> None:
    raw = changed(indicators=[{"id": "bb", "type": "bbands"}, {"id": "ichi", "type": "ichimoku"}], parameters=[])
    raw["entryConditions"] = [{"type": "OVER", "indicator": "close", "params": {"other": "bb"}}]
    raw["exitConditions"] = [{"type": "OVER", "indicator": "close", "params": {"other": "ichi.lagging"}}]
    shown = [text for _, text in problems(raw)]
    assert shown[0].endswith("bb has several lines: write bb.upper or bb.middle or bb.lower")
    assert "looks ahead" in shown[1]


@pytest.mark.parametrize(
    "conditions",
    [
        [{"type": "OVER", "indicator": "r", "params": {"value": 100}}],
        [{"type": "UNDER", "indicator": "close", "params": {"value": 0}}],
        [
            {"type": "OVER", "indicator": "r", "params": {"value": 70}},
            {"type": "AND", "conditions": [{"type": "UNDER", "indicator": "r", "params": {"value": 30}}]},
        ],
        [
            {"type": "CROSSED_UP", "indicator": "r", "params": {"other": "s"}},
            {"type": "CROSSED_DOWN", "indicator": "r", "params": {"other": "s"}},
        ],
        [
            {"type": "OVER", "indicator": "r", "params": {"other": "s"}},
            {"type": "OVER", "indicator": "s", "params": {"other": "r"}},
        ],
        [{"type": "IS_RISING", "indicator": "r"}, {"type": "IS_FALLING", "indicator": "r"}],
        [
            {
                "type": "OR",
                "conditions": [
                    {"type": "OVER", "indicator": "r", "params": {"value": 101}},
                    {"type": "UNDER", "indicator": "r", "params": {"value": -1}},
                ],
            }
        ],
    ],
)
def test_an_exit_that_can_never_be_reached_is_refused(conditions: list[Raw]) -> None:
    raw = {
        "name": "NO_WAY_OUT",
        "indicators": [{"id": "r", "type": "rsi"}, {"id": "s", "type": "sma", "input": "r"}],
        "entryConditions": [{"type": "OVER", "indicator": "r", "params": {"other": "s"}}],
        "exitConditions": conditions,
        "parameters": [],
    }
    [(code, shown)] = problems(raw)
    assert (code, shown.startswith("exitConditions: "), shown.endswith("so they can never hold")) == (
        ProblemKind.CONDITIONS,
        True,
        True,
    )


def test_stops_stand_alone_or_in_an_or_with_other_exits() -> None:
    stop = {"type": "STOP_LOSS", "params": {"percentage": 3}}
    alone = read_spec(changed(exitConditions=[stop]))
    assert (alone.exit, alone.stops[0].type) == ((), ConditionType.STOP_LOSS)
    crossed = crossover()["exitConditions"][0]
    trailing = {"type": "TRAILING_STOP_LOSS", "params": {"percentage": 2.5}}
    both = read_spec(changed(exitConditions=[{"type": "OR", "conditions": [crossed, stop, trailing]}]))
    assert len(both.exit) == 1
    assert compiled(both).stops == {ConditionType.STOP_LOSS: 3.0, ConditionType.TRAILING_STOP_LOSS: 2.5}


def test_hostile_specs_are_refused_or_run() -> None:
    """Random damage to valid specs: a typed refusal or a result, quickly, and never anything else."""
    chance = random.Random(7)
    bars = walk(9, 120)
    began, accepted = time.monotonic(), 0
    for _ in range(HOSTILE):
        raw = random_spec(chance) if chance.random() < 0.5 else crossover()
        for _ in range(chance.randint(1, 4)):
            raw = _damaged(raw, chance)
        try:
            spec = read_spec(raw)
        except SpecRefused as error:
            assert 1 <= len(error.problems) <= 60
            assert all(len(str(each)) < 700 for each in error.problems)
            continue
        accepted += 1
        evaluate(compiled(spec), bars)
    assert accepted > 0
    assert time.monotonic() - began < HOSTILE * 0.05


_NASTY: list[Callable[[random.Random], Any]] = [
    lambda _: None,
    lambda _: float("nan"),
    lambda _: float("inf"),
    lambda _: 10**400,
    lambda _: -1e308,
    lambda _: True,
    lambda _: "",
    lambda _: "x" * 100_000,
    lambda _: "__import__('os').system('true')",
    lambda _: "${__class__}",
    lambda _: "${smaPeriod}${smaPeriod}",
    lambda _: "{{7*7}}",
    lambda _: [],
    lambda _: {},
    lambda _: [[[[[[[[[[]]]]]]]]]],
    lambda _: {"type": "AND", "conditions": []},
    lambda chance: chance.random() * 1e6,
    lambda chance: chance.randint(-10, 10),
    lambda _: [{"type": "OVER", "indicator": "close", "params": {"value": 1}}] * 5000,
    lambda _: _deep(2000),
]


def _deep(depth: int) -> Raw:
    found: Raw = {"type": "OVER", "indicator": "close", "params": {"value": 1}}
    for _ in range(depth):
        found = {"type": "NOT", "conditions": [found]}
    return found


def _damaged(raw: Any, chance: random.Random) -> Any:
    """The value with one part replaced, removed, renamed or doubled."""
    if not isinstance(raw, dict | list) or not raw or chance.random() < 0.15:
        return chance.choice(_NASTY)(chance)
    changed = copy.copy(raw)
    if isinstance(changed, dict):
        key = chance.choice(sorted(changed, key=str))
        if chance.random() < 0.1:
            del changed[key]
        elif chance.random() < 0.1:
            changed[str(key) + "_"] = changed.pop(key)
        else:
            changed[key] = _damaged(changed[key], chance)
        return changed
    at = chance.randrange(len(changed))
    if chance.random() < 0.1:
        changed.append(changed[at])
    else:
        changed[at] = _damaged(changed[at], chance)
    return changed


def test_the_example_of_the_docs_is_a_spec() -> None:
    page = (Path(__file__).parents[2] / "docs" / "specs.md").read_text(encoding="utf-8")
    example = page.partition("```yaml\n")[2].partition("```")[0]
    spec = read_spec(read_yaml(example))
    assert spec.name == "DIP_IN_TREND"
    assert len(spec.indicators) == 3
    missing = [each.value for each in ConditionType if each.value not in page]
    assert missing == []
