"""What holds for every indicator of the registry. A new file in the catalogue is covered by being there."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cache, wraps
from typing import Concatenate, ParamSpec, TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.indicators.channels import Channels
from openbell.indicators.registry import all_indicators, get
from openbell.indicators.regular_hours import regular_part_from_minutes
from openbell.indicators.spec import Indicator, Parameter, Setting, plain
from openbell.market.bars import Bars, Values, empty, make, resample
from openbell.market.errors import InvalidParameter
from openbell.market.extras import KINDS, Extra
from openbell.market.instruments import Instrument
from openbell.market.timeframes import Timeframe
from tests.market.walks import CRYPTO, STOCK, at, minutes, walk

INDICATORS = list(all_indicators().values())
MORE = 700
"""Bars: enough for the slowest default by far."""

P = ParamSpec("P")
S = TypeVar("S")


def every_indicator(test: Callable[Concatenate[S, Indicator, P], None]) -> Callable[Concatenate[S, P], None]:
    """Runs a test with each indicator; its failure names all indicators that fail, each with its own error.

    One test instead of 64, because a case costs pytest more than most indicators compute.
    """

    @wraps(test)
    def with_each(self: S, /, *given: P.args, **named: P.kwargs) -> None:
        failed: dict[str, BaseException] = {}
        for indicator in INDICATORS:
            try:
                test(self, indicator, *given, **named)
            except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - raised below with the others
                error.add_note(f"indicator: {indicator.name}")
                failed[indicator.name] = error
        if failed:
            raise BaseExceptionGroup(", ".join(failed), list(failed.values()))

    signature = inspect.signature(test)
    others = [parameter for name, parameter in signature.parameters.items() if name != "indicator"]
    with_each.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
    return with_each


@cache
def crypto_bars() -> Bars:
    """Two UTC days' worth of minutes around a midnight."""
    return walk(minutes("2025-03-04T19:00Z", "2025-03-05T06:40Z"), 21, price=54321.0)


@cache
def stock_bars() -> Bars:
    """From one session's afternoon over the night into the next one's, extended hours and gaps included."""
    times = np.concatenate(
        (minutes("2025-11-26T19:30Z", "2025-11-27T01:00Z"), minutes("2025-11-28T12:00Z", "2025-11-28T20:00Z"))
    )
    keep = np.random.default_rng(4).random(len(times)) < 0.9
    return walk(times[keep], 22, STOCK, price=187.3)


def smallest_of(parameter: Parameter) -> Setting:
    """The lowest number, another choice, the switch turned."""
    if isinstance(parameter.default, bool):
        return not parameter.default
    return parameter.choices[-1] if isinstance(parameter.default, str) else parameter.low


def larger_of(parameter: Parameter) -> Setting:
    if isinstance(parameter.default, bool | str):
        return parameter.default
    return min(parameter.high, parameter.default * 2 + 1)


def settings_of(indicator: Indicator) -> list[dict[str, Setting]]:
    """The defaults, each parameter as small as it may be, and some larger ones."""
    default = indicator.settings()
    smallest = indicator.settings(**{p.name: smallest_of(p) for p in indicator.parameters})
    larger = indicator.settings(**{p.name: larger_of(p) for p in indicator.parameters})
    found = [default, smallest, larger]
    found += [indicator.settings(**{p.name: smallest_of(p)}) for p in indicator.parameters]
    return [each for at_each, each in enumerate(found) if each not in found[:at_each]]


def extras_for(bars: Bars) -> dict[str, Extra]:
    """Something of every kind, known from a little before the first bar on, always the same at the same moment."""
    return _extras_from(int(bars.time[0]) if len(bars) else 0)


@cache
def _extras_from(first: int) -> dict[str, Extra]:
    times = np.arange(first - 86400 - first % 60, first + 40 * 86400, 60, dtype=np.int64)
    return {kind: Extra(times, np.sin(times / (977.0 + number)) * 3 + 1) for number, kind in enumerate(KINDS)}


def run(indicator: Indicator, bars: Bars, /, **chosen: object) -> Channels:
    return indicator.run(bars, extras_for(bars), **chosen)


def series(channels: Channels) -> Iterator[tuple[str, Values]]:
    """Every array that a computation gives, under a name for messages."""
    for line in (*channels.lines, *channels.histogram):
        yield line.label, line.values
    for number, fill in enumerate(channels.fills):
        yield f"fill {number} upper", fill.upper
        yield f"fill {number} lower", fill.lower


def close_enough(found: Values, expected: Values, bars: Bars) -> bool:
    """To 1e-12 of the value, or of the price where a difference of prices cancels out."""
    scale = float(np.max(np.abs(bars.high))) if len(bars) else 1.0
    return bool(np.allclose(found, expected, rtol=1e-12, atol=1e-12 * scale, equal_nan=True))


@pytest.mark.parametrize("bars", [crypto_bars, stock_bars])
class TestValues:
    @every_indicator
    def test_never_sees_the_future(self, indicator: Indicator, bars: object) -> None:
        data = crypto_bars() if bars is crypto_bars else stock_bars()
        cuts = sorted({1, 2, 3, 5, 14, 27, 34, 35, 52, *range(60, len(data), 113), len(data) - 1})
        for number, chosen in enumerate(settings_of(indicator)):
            whole = run(indicator, data, **chosen)
            # The defaults at every cut; other settings take turns at them.
            for cut in cuts if not number else cuts[number % 3 :: 3]:
                then = run(indicator, data.take(slice(0, cut)), **chosen)
                for (label, past), (_, all_of_it) in zip(series(then), series(whole), strict=True):
                    if label in indicator.displaced:
                        continue
                    assert close_enough(past, all_of_it[:cut], data), (label, chosen, cut)
                expected = [signal for signal in whole.signals if signal.index < cut]
                assert [(s.index, s.label) for s in then.signals] == [(s.index, s.label) for s in expected]
                assert [s.value for s in then.signals] == pytest.approx([s.value for s in expected], rel=1e-12)

    @every_indicator
    def test_what_comes_later_changes_nothing(self, indicator: Indicator, bars: object) -> None:
        """The same past with another future: a crash, a spike, no volume."""
        data = crypto_bars() if bars is crypto_bars else stock_bars()
        cut = len(data) // 2
        factor = np.where(np.arange(len(data)) < cut, 1.0, 1e-3)
        other = make(
            data.instrument, data.timeframe, data.time, *(c * factor for c in data.columns()[1:5]), data.volume * factor
        )
        for (label, mine), (_, theirs) in zip(series(run(indicator, data)), series(run(indicator, other)), strict=True):
            if label in indicator.displaced:
                continue
            assert close_enough(mine[:cut], theirs[:cut], data), label

    @every_indicator
    def test_every_series_is_as_long_as_the_bars(self, indicator: Indicator, bars: object) -> None:
        data = crypto_bars() if bars is crypto_bars else stock_bars()
        for chosen in settings_of(indicator):
            assert {len(values) for _, values in series(run(indicator, data, **chosen))} <= {len(data)}

    @every_indicator
    def test_inputs_are_left_as_they_were(self, indicator: Indicator, bars: object) -> None:
        data = (crypto_bars() if bars is crypto_bars else stock_bars()).copy()
        before = data.copy()
        for column in data.columns():
            column.flags.writeable = False

        for chosen in settings_of(indicator):
            result = run(indicator, data, **chosen)
            assert not any(
                np.shares_memory(values, column) for _, values in series(result) for column in data.columns()
            )

        assert data.same_as(before)


@cache
def larger_stock_bars(timeframe: Timeframe) -> tuple[Bars, Bars]:
    """Bars that hold more than regular hours, and their regular part: a month with the clock's change and a half day."""
    time = minutes("2025-10-30T09:00Z", "2025-12-02T01:00Z")
    time = time[(time // 3600 - 9) % 24 < 16]
    time = time[(np.random.default_rng(4).random(len(time)) < 0.9) & ((time // 86400 + 3) % 7 < 5)]
    traded = walk(time, 22, STOCK, price=187.3)
    bars = resample(traded, timeframe, at("2025-12-02T12:00Z"))
    return bars, regular_part_from_minutes(bars, traded)


@pytest.mark.parametrize("timeframe", [Timeframe.H1, Timeframe.H4])
class TestLargerStockBars:
    @every_indicator
    def test_every_series_is_as_long_as_the_bars(self, indicator: Indicator, timeframe: Timeframe) -> None:
        bars, regular = larger_stock_bars(timeframe)
        for chosen in settings_of(indicator):
            batch = indicator.run(bars, extras_for(bars), regular, **chosen)
            assert {len(values) for _, values in series(batch)} <= {len(bars)}, chosen

    @every_indicator
    def test_never_sees_the_future(self, indicator: Indicator, timeframe: Timeframe) -> None:
        bars, regular = larger_stock_bars(timeframe)
        extras = extras_for(bars)
        whole = indicator.run(bars, extras, regular)
        for cut in sorted({1, 2, 3, 5, *range(7, len(bars), max(1, len(bars) // 19)), len(bars) - 1}):
            before = slice(0, cut)
            then = indicator.run(bars.take(before), extras, regular.take(before))
            for (label, past), (_, all_of_it) in zip(series(then), series(whole), strict=True):
                assert label in indicator.displaced or close_enough(past, all_of_it[:cut], bars), (label, cut)


@cache
def few_bars(instrument: Instrument, count: int) -> Bars:
    return walk(at("2025-03-04T15:00Z") + np.arange(count) * 60, 5, instrument) if count else empty(instrument)


class TestWarmUp:
    @every_indicator
    def test_the_slowest_line_has_its_first_value_at_the_bar_it_needs(self, indicator: Indicator) -> None:
        for chosen in settings_of(indicator):
            result = run(indicator, crypto_bars(), **chosen)
            missing = []
            for label, values in series(result):
                if label in indicator.displaced or label in indicator.sparse:
                    continue
                lead = int(np.isnan(values).sum())
                assert not np.isnan(values[lead:]).any(), f"{label} has holes with {chosen}"
                assert np.isfinite(values[lead:]).all()
                missing.append(lead)

            wanted = indicator.warmup(**chosen)
            # 0: it depends on the sessions in the data, not on a number of bars.
            assert not missing or not wanted or max(missing) == wanted - 1, chosen

    @every_indicator
    def test_signals_wait_for_the_warm_up_and_are_declared(self, indicator: Indicator) -> None:
        result = run(indicator, walk(minutes("2025-03-04T00:00Z", "2025-03-06T00:00Z"), 9, step=0.02))

        assert all(0 <= signal.index < 2880 for signal in result.signals)
        assert {signal.label for signal in result.signals} <= set(indicator.labels)
        assert [s.index for s in result.signals] == sorted(s.index for s in result.signals)
        assert all(np.isfinite(signal.value) for signal in result.signals)

    @pytest.mark.parametrize("instrument", [CRYPTO, STOCK])
    @every_indicator
    def test_too_few_bars_give_nulls_not_errors(self, indicator: Indicator, instrument: Instrument) -> None:
        for count in (0, 1, 2, 3, 5, 10, 33):
            bars = few_bars(instrument, count)
            for chosen in settings_of(indicator):
                result = run(indicator, bars, **chosen)

                assert all(len(values) == count for _, values in series(result)), (count, chosen)
                if result.lines and count < indicator.warmup(**chosen):
                    assert any(np.isnan(values).all() for _, values in series(result)), (count, chosen)

    @every_indicator
    def test_any_timeframe_will_do(self, indicator: Indicator) -> None:
        for timeframe in (Timeframe.M5, Timeframe.H4, Timeframe.D1):
            bars = walk(at("2025-03-03T00:00Z") + np.arange(100) * timeframe.seconds, 6, CRYPTO, timeframe)

            assert all(len(values) == 100 for _, values in series(run(indicator, bars))), timeframe

    @every_indicator
    def test_no_volume_and_no_movement_are_no_reason_to_fail(self, indicator: Indicator) -> None:
        """Warnings are errors here: a division by nothing would show."""
        time = at("2025-03-04T15:00Z") + np.arange(MORE) * 60
        flat = np.full(MORE, 10.1)
        bars = make(CRYPTO, Timeframe.M1, time, flat, flat, flat, flat, np.zeros(MORE))

        assert all(not np.isinf(values).any() for _, values in series(run(indicator, bars)))

    @given(seed=st.integers(0, 2**32), count=st.integers(0, 80), price=st.sampled_from([1e-8, 1.0, 1e9]))
    @settings(deadline=None, max_examples=20)
    @every_indicator
    def test_any_walk_at_any_price(self, indicator: Indicator, seed: int, count: int, price: float) -> None:
        bars = walk(at("2025-03-04T23:30Z") + np.arange(count) * 60, seed, price=price, step=0.01)
        whole, half = run(indicator, bars), run(indicator, bars.take(slice(0, count // 2)))
        for (label, past), (_, all_of_it) in zip(series(half), series(whole), strict=True):
            assert len(all_of_it) == count
            assert label in indicator.displaced or close_enough(past, all_of_it[: count // 2], bars), label


class TestParameters:
    @every_indicator
    def test_the_defaults_are_allowed(self, indicator: Indicator) -> None:
        assert indicator.settings() == {p.name: p.default for p in indicator.parameters}
        for parameter in indicator.parameters:
            if isinstance(parameter.default, str):
                assert parameter.default in parameter.choices
            elif not isinstance(parameter.default, bool):
                assert parameter.low <= parameter.default <= parameter.high

    @every_indicator
    def test_a_value_out_of_bounds_or_of_another_kind_is_refused(self, indicator: Indicator) -> None:
        for parameter in indicator.parameters:
            for value in bad_values(parameter):
                with pytest.raises(InvalidParameter, match=parameter.name):
                    run(indicator, crypto_bars(), **{parameter.name: value})

    @every_indicator
    def test_the_bounds_themselves_are_allowed(self, indicator: Indicator) -> None:
        for parameter in indicator.parameters:
            if isinstance(parameter.default, bool | str):
                continue
            for value in (parameter.low, parameter.high):
                assert indicator.settings(**{parameter.name: value})[parameter.name] == value
            run(indicator, crypto_bars(), **{parameter.name: parameter.high})

    @every_indicator
    def test_an_unknown_parameter_is_refused_and_the_known_ones_named(self, indicator: Indicator) -> None:
        with pytest.raises(InvalidParameter, match="nonsense") as refused:
            run(indicator, crypto_bars(), nonsense=1)
        assert "did you mean" in refused.value.message or all(
            parameter.name in refused.value.message for parameter in indicator.parameters
        )

    @every_indicator
    def test_another_name_of_a_parameter_sets_it(self, indicator: Indicator) -> None:
        names = [plain(name) for p in indicator.parameters for name in (p.name, *p.aliases)]
        assert len(names) == len(set(names))
        for parameter in indicator.parameters:
            for alias in parameter.aliases:
                chosen = larger_of(parameter)
                assert indicator.settings(**{alias: chosen}) == indicator.settings(**{parameter.name: chosen})
                with pytest.raises(InvalidParameter, match="twice"):
                    indicator.settings(**{alias: chosen, parameter.name: chosen})

    @every_indicator
    def test_a_legend_names_it_and_its_numbers(self, indicator: Indicator) -> None:
        label = indicator.label(indicator.settings())

        assert label.startswith(indicator.title)
        numbers = [p.default for p in indicator.parameters if not isinstance(p.default, bool | str)]
        assert all(f"{number:g}" in label for number in numbers)


def bad_values(parameter: Parameter) -> list[object]:
    others: list[object] = [None, "14", "", [], {}, float("nan"), float("inf"), float("-inf"), 1j, 10**400]
    if isinstance(parameter.default, bool):
        return [*others, 0, 1]
    if isinstance(parameter.default, str):
        return [*others, 0, True]
    beyond: list[object] = [parameter.low - 1, parameter.high + 1, -(10**30), True, False]
    return beyond + others + ([parameter.default + 0.5] if isinstance(parameter.default, int) else [])


class TestRegistry:
    def test_has_what_the_signals_and_charts_of_the_first_contract_need(self) -> None:
        assert {"ema_line", "sma", "macd", "rsi", "bbands", "atr", "vwap"} <= set(all_indicators())

    def test_names_and_aliases_are_unique(self) -> None:
        names = [name for indicator in INDICATORS for name in (indicator.name, *indicator.aliases)]

        assert len(names) == len(set(names))

    @every_indicator
    def test_is_found_by_name_and_alias(self, indicator: Indicator) -> None:
        assert all(get(name) is indicator for name in (indicator.name, *indicator.aliases))

    @every_indicator
    def test_describes_itself(self, indicator: Indicator) -> None:
        assert indicator.title
        assert len(indicator.description) > 10
        assert set(indicator.inputs) <= {"open", "high", "low", "close", "volume"}
        assert indicator.inputs
        assert len({p.name for p in indicator.parameters}) == len(indicator.parameters)

    def test_the_catalogue_is_sorted(self) -> None:
        assert list(all_indicators()) == sorted(all_indicators())

    @pytest.mark.parametrize(("name", "near"), [("rsy", "rsi"), ("bbnds", "bbands"), ("mcad", "macd")])
    def test_a_name_that_is_none_is_refused_with_the_nearest(self, name: str, near: str) -> None:
        with pytest.raises(InvalidParameter, match=f"did you mean '{near}'"):
            get(name)

    def test_a_name_like_no_other_is_refused_plainly(self) -> None:
        with pytest.raises(InvalidParameter, match=r"no indicator 'qqqqqqqq'; list_indicators"):
            get("qqqqqqqq")

    @every_indicator
    def test_reads_only_the_columns_it_names(self, indicator: Indicator) -> None:
        """Columns that it does not name may hold anything: the numbers stay the same."""
        bars = crypto_bars()
        random = np.random.default_rng(8)
        columns = [
            column if name in indicator.inputs else random.uniform(1.0, 2.0, len(bars))
            for name, column in zip(("open", "high", "low", "close", "volume"), bars.columns()[1:], strict=True)
        ]
        other = make(CRYPTO, Timeframe.M1, bars.time, *columns)
        for (label, mine), (_, theirs) in zip(series(run(indicator, bars)), series(run(indicator, other)), strict=True):
            assert np.array_equal(mine, theirs, equal_nan=True), label
