"""Grids: the combinations of parameter values that a sweep tries.

Values of a parameter are written as numbers and ranges: `5,9,12`, `5..20` or `5..20:5`, whose end is included. A parameter
without values gets some from its range. Combinations that make little sense, such as a fast period that is longer than the
slow one, are kept: they are tries like the others, and count in the overfitting statistics.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import isfinite, prod

from openbell.market.errors import InvalidParameter
from openbell.market.nearest import did_you_mean
from openbell.strategies.compiled import compiled
from openbell.strategies.spec import Number, Spec, SpecParameter

USUAL_COMBINATIONS = 1000
MOST_COMBINATIONS = 100_000
MOST_VALUES = 10_000
"""Of one parameter."""
_STEPS = 8
"""A range of fractions without a step is divided into so many."""
_SEED = 7

Combination = Mapping[str, Number]
"""A value for each parameter."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Combinations in the order of the parameters, in which the last one changes fastest."""

    combinations: tuple[Combination, ...]
    possible: int
    """How many combinations the values have; more than `combinations` if these are a sample."""


def grid(spec: Spec, values: Mapping[str, Sequence[Number]] | None = None, most: int = USUAL_COMBINATIONS) -> Grid:
    """Returns the combinations of the given values, and of values from the range of each parameter that has none.

    From the range of a whole parameter every number is used, from others nine and the default. If there are more than `most`
    combinations, a sample is returned that includes the defaults; it is the same at each call. Raises `InvalidParameter`.
    """
    if not 1 <= most <= MOST_COMBINATIONS:
        raise InvalidParameter(f"the number of combinations must be between 1 and {MOST_COMBINATIONS:,}, not {most}")
    given = {_parameter(spec, name).name: each for name, each in (values or {}).items()}
    axes = [_given(spec, each, given[each.name]) if each.name in given else _usual(each) for each in spec.parameters]
    possible = prod(len(axis) for axis in axes)
    names = [each.name for each in spec.parameters]
    rows = product(*axes) if possible <= most else _sample(spec, axes, possible, most)
    return Grid(tuple(dict(zip(names, row, strict=True)) for row in rows), possible)


def read_values(spec: Spec, texts: Sequence[str]) -> dict[str, tuple[Number, ...]]:
    """Returns the values that texts such as `fastPeriod=5..20:5` give to parameters. Raises `InvalidParameter`."""
    found: dict[str, tuple[Number, ...]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals:
            raise InvalidParameter(f"{text[:40]!r}: write NAME=VALUES, such as {name.strip()[:20] or 'period'}=5..20:5")
        parameter = _parameter(spec, name.strip())
        found[parameter.name] = parse_values(parameter, values)
    return found


def _parameter(spec: Spec, name: str) -> SpecParameter:
    known = {each.name: each for each in spec.parameters}
    if name not in known:
        advice = did_you_mean(name, known) or f"; it has {', '.join(known) or 'none'}"
        raise InvalidParameter(f"{spec.name} has no parameter {name[:80]!r}{advice}")
    return known[name]


def parse_values(parameter: SpecParameter, text: str) -> tuple[Number, ...]:
    """Returns the values that a text such as `5,9,12` or `5..20:5` names. Raises `InvalidParameter`."""
    found: list[Number] = []
    for item in text.split(","):
        found += _range(parameter, item) if ".." in item else [_number(parameter, item, item)]
    return tuple(dict.fromkeys(found))


def _range(parameter: SpecParameter, text: str) -> list[Number]:
    span, colon, step_text = text.partition(":")
    ends = span.partition("..")
    low, high = (_number(parameter, each, text) for each in (ends[0], ends[2]))
    if not colon and not parameter.whole:
        raise InvalidParameter(f"{parameter.name}={text.strip()[:40]}: add a step, such as {low:g}..{high:g}:0.5")
    step = _number(parameter, step_text, text) if colon else 1
    if step <= 0 or high < low:
        raise InvalidParameter(f"{parameter.name}={text.strip()[:40]}: write LOW..HIGH:STEP with a step above 0")
    # The tolerance includes an end such as that of 0.1..0.3:0.1, which rounding puts below the last step.
    steps = (high - low) / step * (1 + 1e-9)
    if steps >= MOST_VALUES:
        raise InvalidParameter(f"{parameter.name}={text.strip()[:40]}: at most {MOST_VALUES:,} values")
    return [_rounded(parameter, low + at * step) for at in range(int(steps) + 1)]


def _number(parameter: SpecParameter, text: str, whole_text: str) -> Number:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not isfinite(number) or (parameter.whole and number != int(number)):
        kind = "whole numbers" if parameter.whole else "numbers"
        raise InvalidParameter(
            f"{parameter.name}={whole_text.strip()[:40]}: write {kind} such as 5,9,12 or a range such as 5..20:5"
        )
    return int(number) if parameter.whole else number


def _rounded(parameter: SpecParameter, value: float) -> Number:
    """Returns a value without the last digits, which are rounding."""
    return int(value) if parameter.whole else float(f"{value:.12g}")


def _given(spec: Spec, parameter: SpecParameter, values: Sequence[Number]) -> list[Number]:
    if not 1 <= len(values) <= MOST_VALUES:
        raise InvalidParameter(f"{parameter.name} needs between 1 and {MOST_VALUES:,} values, not {len(values)}")
    checked = [compiled(spec, {parameter.name: each}).parameters[parameter.name] for each in values]
    return sorted(dict.fromkeys(checked))


def _usual(parameter: SpecParameter) -> list[Number]:
    low, high = parameter.low, parameter.high
    if parameter.whole and high - low < MOST_VALUES:
        return list(range(int(low), int(high) + 1))
    steps = MOST_VALUES - 2 if parameter.whole else _STEPS
    values = {_rounded(parameter, low + (high - low) * at / steps) for at in range(1, steps)}
    return sorted({low, high, parameter.default, *values})


def _sample(spec: Spec, axes: list[list[Number]], possible: int, most: int) -> list[tuple[Number, ...]]:
    """Returns `most` rows of the product in its order, the defaults among them if it has them."""
    chance = random.Random(_SEED)  # noqa: S311 - not for secrets: the same sample each time
    defaults = [each.default for each in spec.parameters]
    chosen: set[int] = set()
    if all(default in axis for default, axis in zip(defaults, axes, strict=True)):
        chosen.add(_position(axes, defaults))
    if possible < 4 * most:
        # Most are chosen: shuffle all rather than draw until one is new.
        rest = [each for each in range(possible) if each not in chosen]
        chosen.update(chance.sample(rest, most - len(chosen)))
    while len(chosen) < most:
        chosen.add(chance.randrange(possible))
    return [_row(axes, at) for at in sorted(chosen)]


def _position(axes: list[list[Number]], row: Sequence[Number]) -> int:
    at = 0
    for axis, value in zip(axes, row, strict=True):
        at = at * len(axis) + axis.index(value)
    return at


def _row(axes: list[list[Number]], at: int) -> tuple[Number, ...]:
    found = []
    for axis in reversed(axes):
        at, place = divmod(at, len(axis))
        found.append(axis[place])
    return tuple(reversed(found))
