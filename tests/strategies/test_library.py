"""The sixty canonical strategies: all there, each readable, none looks ahead, and each trades."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from importlib import resources

import pytest

from openbell.market.timeframes import Timeframe
from openbell.strategies import library
from openbell.strategies.compiled import Compiled, compiled
from openbell.strategies.evaluation import Conditions, evaluate
from openbell.strategies.library import canonical
from openbell.strategies.spec import Complexity, Spec, SpecParameter
from tests.strategies.cutting import looks_ahead
from tests.strategies.stretches import Stretch, crypto_walk, flat, simulated, stock_hours

NAMES = {
    Complexity.SIMPLE: """
        SMA_EMA_CROSSOVER DOUBLE_EMA_CROSSOVER MACD_CROSSOVER TRIPLE_EMA_CROSSOVER DEMA_TEMA_CROSSOVER RSI_EMA_CROSSOVER
        ROC_MA_CROSSOVER MOMENTUM_SMA_CROSSOVER VWAP_CROSSOVER OBV_EMA DPO_CROSSOVER AWESOME_OSCILLATOR
        CHAIKIN_OSCILLATOR PVT VPT""",
    Complexity.MEDIUM: """
        ADX_DMI ADX_STOCHASTIC AROON_MFI ATR_CCI BBAND_WILLIAMS_R CMO_MFI DONCHIAN_BREAKOUT KST_OSCILLATOR
        MOMENTUM_PINBALL SAR_MFI SMA_RSI STOCHASTIC_EMA STOCHASTIC_RSI VOLUME_BREAKOUT VWAP_MEAN_REVERSION""",
    Complexity.COMPLEX: """
        ATR_TRAILING_STOP CMF_ZERO_LINE DOUBLE_TOP_BOTTOM ELDER_RAY_MA EMA_MACD FIBONACCI_RETRACEMENTS FRAMA GANN_SWING
        HEIKEN_ASHI ICHIMOKU_CLOUD KLINGER_VOLUME LINEAR_REGRESSION_CHANNELS MASS_INDEX PARABOLIC_SAR PIVOT PRICE_GAP
        PRICE_OSCILLATOR_SIGNAL RAINBOW_OSCILLATOR RANGE_BARS REGRESSION_CHANNEL RENKO_CHART RVI TICK_VOLUME_ANALYSIS
        TRIX_SIGNAL_LINE VARIABLE_PERIOD_EMA VOLATILITY_STOP VOLUME_PROFILE VOLUME_PROFILE_DEVIATIONS
        VOLUME_SPREAD_ANALYSIS VOLUME_WEIGHTED_MACD""",
}
SPECS = tuple(canonical().values())
each_spec = pytest.mark.parametrize("spec", SPECS, ids=[spec.name for spec in SPECS])


def variants(spec: Spec) -> list[Compiled]:
    """The strategy at its defaults, with every parameter at its least, and with every parameter at its largest."""
    return [
        compiled(spec),
        compiled(spec, {each.name: each.low for each in spec.parameters}),
        compiled(spec, {each.name: each.high for each in spec.parameters}),
    ]


def over(strategy: Compiled, stretch: Stretch) -> Conditions:
    return evaluate(strategy, stretch.bars, stretch.regular)


def trades(found: Conditions) -> int:
    """The number of entries that an exit follows, one position at a time."""
    closed, is_open = 0, False
    for entry, leave in zip(found.entry.tolist(), found.exit.tolist(), strict=True):
        closed += is_open and leave
        is_open = not leave if is_open else entry
    return closed


def distinct_values(parameter: SpecParameter) -> int:
    """How many values a parameter has in steps of the last decimal place of its bounds and its default."""
    numbers = [Decimal(str(each)) for each in (parameter.low, parameter.high, parameter.default)]
    places = min(int(each.as_tuple().exponent) for each in numbers)
    return int((numbers[1] - numbers[0]).scaleb(-places)) + 1


def test_the_library_has_the_sixty_strategies_with_their_complexity() -> None:
    expected = {name: complexity for complexity, names in NAMES.items() for name in names.split()}
    assert len(expected) == 60
    assert {spec.name: spec.complexity for spec in SPECS} == expected


def test_a_file_is_named_by_its_strategy() -> None:
    files = {each.name for each in resources.files(library).iterdir() if each.name.endswith(".yaml")}
    assert files == {f"{spec.name.lower()}.yaml" for spec in SPECS}


@each_spec
def test_each_is_described_with_its_source(spec: Spec) -> None:
    assert 20 <= len(spec.description) <= 160
    assert spec.description.endswith(".")
    assert 20 <= len(spec.idea) <= 160
    assert spec.idea.endswith(".")
    assert "\n" not in spec.description + spec.idea


@each_spec
def test_each_has_parameters_that_a_sweep_can_cover(spec: Spec) -> None:
    assert 1 <= len(spec.parameters) <= 4
    values = {each.name: distinct_values(each) for each in spec.parameters}
    assert {name: count for name, count in values.items() if not 3 <= count <= 40} == {}
    ranges = {each.name.removesuffix("Period"): each for each in spec.parameters}
    for shorter, longer in (("fast", "slow"), ("fast", "medium"), ("medium", "slow"), ("oversold", "overbought")):
        if shorter in ranges and longer in ranges:
            assert ranges[shorter].high < ranges[longer].low


STRETCHES: dict[str, Callable[[], Stretch]] = {
    "a walk of crypto hours": crypto_walk,
    "days of a stock": lambda: simulated("AAPL", Timeframe.D1, 600),
    "hours of a stock with sessions": lambda: stock_hours(40),
    "flat days": lambda: flat("AAPL", Timeframe.D1),
    "flat hours": lambda: flat("BTC/USD", Timeframe.H1),
}


@pytest.mark.parametrize("stretch", STRETCHES.values(), ids=STRETCHES)
def test_none_looks_ahead(stretch: Callable[[], Stretch]) -> None:
    given = stretch()
    for strategy in [strategy for spec in SPECS for strategy in variants(spec)]:
        whole = over(strategy, given)
        for cut in (150, 277, len(given.bars) - 1):
            assert not looks_ahead(strategy, given.bars, cut, given.regular, whole), (strategy.name, cut)


@each_spec
def test_none_enters_while_the_price_does_not_move(spec: Spec) -> None:
    for stretch in (flat("AAPL", Timeframe.D1), flat("BTC/USD", Timeframe.H1)):
        assert not any(over(strategy, stretch).entry.any() for strategy in variants(spec))


@each_spec
def test_each_enters_and_exits_and_never_at_the_same_close(spec: Spec) -> None:
    """On ten years of days of a stock and of a coin, and on hours."""
    days = [simulated(symbol, Timeframe.D1, 3600) for symbol in ("AAPL", "BTC/USD")]
    hours = [stock_hours(40), simulated("BTC/USD", Timeframe.H1, 60)]
    closed = 0
    for stretch in (*days, *hours):
        for strategy in variants(spec):
            found = over(strategy, stretch)
            assert not (found.entry & found.exit).any()
        closed += trades(over(compiled(spec), stretch))
    assert closed >= 3


@each_spec
def test_each_parameter_has_an_effect(spec: Spec) -> None:
    """Beyond the length of the warm-up."""
    stretches = [simulated("AAPL", Timeframe.D1, 3600), simulated("BTC/USD", Timeframe.H1, 60)]

    def effect(strategy: Compiled) -> object:
        found = [over(strategy, stretch) for stretch in stretches]
        return [(each.entry[300:].tolist(), each.exit[300:].tolist()) for each in found], strategy.stops

    for each in spec.parameters:
        low, high = (compiled(spec, {each.name: value}) for value in (each.low, each.high))
        assert effect(low) != effect(high), each.name


@pytest.mark.parametrize("name", ["VWAP_CROSSOVER", "VWAP_MEAN_REVERSION"])
def test_a_bar_that_is_a_whole_session_has_no_vwap_to_trade_against(name: str) -> None:
    for strategy in variants(canonical()[name]):
        assert not over(strategy, simulated("AAPL", Timeframe.D1, 3600)).entry.any()
        assert over(strategy, stock_hours(40)).entry.any()
