"""The content of a strategy: equal for strategies that trade the same, different for all others."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from openbell.strategies.compiled import compiled, content_of
from openbell.strategies.library import canonical
from openbell.strategies.reading import read_spec

FAST = {"id": "fast", "type": "EMA", "params": {"length": "${n}"}}
SLOW = {"id": "slow", "type": "EMA", "params": {"length": 30}}
UP = {"type": "CROSSED_UP", "indicator": "fast", "params": {"crosses": "slow"}}
OVER = {"type": "OVER", "indicator": "fast", "params": {"value": 5}}
SPEC: dict[str, Any] = {
    "name": "FIRST",
    "indicators": [FAST, SLOW],
    "entry_conditions": [UP, OVER],
    "exit_conditions": [{"type": "STOP_LOSS", "params": {"percentage": 5}}],
    "parameters": [{"name": "n", "type": "INTEGER", "min": 5, "max": 20, "defaultValue": 9}],
}


def content(changes: dict[str, Any] | None = None, **parameters: int) -> str:
    return content_of(compiled(read_spec({**SPEC, **(changes or {})}), parameters))


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "SECOND", "description": "a copy"},
        {"entry_conditions": [OVER, UP]},
        {"entry_conditions": [UP, OVER, UP]},
        {"entry_conditions": [{"type": "AND", "conditions": [OVER, UP]}]},
        {"indicators": [SLOW, FAST]},
        {"parameters": [{**SPEC["parameters"][0], "max": 90}]},
    ],
)
def test_strategies_that_trade_the_same_have_the_same_content(changes: dict[str, Any]) -> None:
    assert content(changes) == content()


def test_names_of_indicators_and_parameters_do_not_matter() -> None:
    other = {
        "indicators": [{**FAST, "id": "a", "params": {"length": "${m}"}}, {**SLOW, "id": "b"}],
        "entry_conditions": [{**UP, "indicator": "a", "params": {"crosses": "b"}}, {**OVER, "indicator": "a"}],
        "parameters": [{**SPEC["parameters"][0], "name": "m"}],
    }
    assert content(other, m=12) == content(n=12)


@pytest.mark.parametrize(
    "changes",
    [
        {"entry_conditions": [UP]},
        {"entry_conditions": [UP, {**OVER, "params": {"value": 6}}]},
        {"entry_conditions": [{"type": "OR", "conditions": [OVER, UP]}]},
        {"entry_conditions": [{**UP, "type": "CROSSED_DOWN"}, OVER]},
        {"entry_conditions": [UP, {**OVER, "indicator": "slow"}]},
        {"exit_conditions": [{"type": "STOP_LOSS", "params": {"percentage": 6}}]},
        {"exit_conditions": [{"type": "TRAILING_STOP_LOSS", "params": {"percentage": 5}}]},
        {"indicators": [FAST, {**SLOW, "params": {"length": 31}}]},
    ],
)
def test_strategies_that_trade_otherwise_have_other_content(changes: dict[str, Any]) -> None:
    assert content(changes) != content()


TURNED = {"type": "CROSSED_DOWN", "indicator": "slow", "params": {"crosses": "fast"}}
ABOVE = {"type": "OVER", "indicator": "fast", "params": {"other": "slow"}}
BELOW = {"type": "UNDER", "indicator": "slow", "params": {"other": "fast"}}


def test_the_same_comparison_in_the_other_order_is_the_same_content() -> None:
    assert content({"entry_conditions": [TURNED, OVER]}) == content()
    assert content({"entry_conditions": [ABOVE, OVER]}) == content({"entry_conditions": [OVER, BELOW]})
    # Two values may be equal: not below is not above.
    inverse = {"type": "NOT", "conditions": [{**BELOW, "type": "OVER"}]}
    assert content({"entry_conditions": [inverse, OVER]}) != content({"entry_conditions": [ABOVE, OVER]})


def test_strategies_of_one_idea_differ_in_their_numbers_only() -> None:
    def idea(**changes: Any) -> str:
        return content_of(compiled(read_spec({**SPEC, **changes})), constants=False)

    stop = {"type": "STOP_LOSS", "params": {"percentage": 9}}
    assert idea(indicators=[FAST, {**SLOW, "params": {"length": 31}}], exit_conditions=[stop]) == idea()
    assert idea(entry_conditions=[TURNED, {**OVER, "params": {"value": 6}}]) == idea()
    assert idea(entry_conditions=[UP]) != idea()
    assert idea(entry_conditions=[UP, {**OVER, "type": "UNDER"}]) != idea()


def test_parameters_are_part_of_the_content() -> None:
    assert content(n=9) == content()
    assert content(n=10) != content()


def test_canonical_strategies_all_differ() -> None:
    found = {content_of(compiled(each)) for each in canonical().values()}
    assert len(found) == len(canonical())


def test_attack_chained_indicators_and_nested_conditions_need_no_memory() -> None:
    """Each indicator is computed from the one before, and each condition is inside another."""
    chain = [{"id": "i0", "type": "SMA", "params": {"length": 9}}]
    chain += [{"id": f"i{at}", "type": "SMA", "input": f"i{at - 1}", "params": {"length": 2}} for at in range(1, 6)]
    condition: dict[str, Any] = {"type": "OVER", "indicator": "i5", "params": {"value": 5}}
    for at in range(3):
        condition = {"type": "OR" if at % 2 else "NOT", "conditions": [condition]}
    spec = compiled(read_spec({**SPEC, "indicators": chain, "entry_conditions": [condition], "parameters": []}))
    tracemalloc.start()
    try:
        content_of(spec)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()
