"""@pyne

Averages and channels: TradingView's functions, and the scripts of its indicators that are made of them.
"""

from pynecore.lib import bar_index, close, high, hl2, low, math, na, open, script, ta
from pynecore.types import Persistent, Series, na_float

from tests.indicators.pine.chosen import of


def double(length):
    once = ta.ema(close, length)
    return 2 * once - ta.ema(once, length)


def triple(length):
    once = ta.ema(close, length)
    twice = ta.ema(once, length)
    return 3 * (once - twice) + ta.ema(twice, length)


def mcginley(length):
    level: Series[float] = 0.0
    average = ta.ema(close, length)
    level = average if na(level[1]) else level[1] + (close - level[1]) / (length * math.pow(close / level[1], 4))
    return level


def hamming(length):
    total = 0.0
    weights = 0.0
    for age in range(length):
        weight = 0.54 - 0.46 * math.cos(2 * math.pi * age / (length - 1))
        total += weight * close[age]
        weights += weight
    return total / weights


def delayed(source, by):
    values: Series[float] = source
    return values[by]


def averaged(source, length, method):
    if method == "exponential":
        return ta.ema(source, length)
    return ta.wma(source, length) if method == "weighted" else ta.sma(source, length)


def sar(start, increment, maximum):
    """The script that TradingView prints for ta.sar; PyneCore's takes the first side from the highs."""
    stop: Persistent[float] = na_float
    extreme: Persistent[float] = na_float
    pace: Persistent[float] = na_float
    rising: Persistent[bool] = False
    begins = bar_index == 1
    if begins:
        rising = close > close[1]
        extreme = high if rising else low
        stop = low[1] if rising else high[1]
        pace = start
    stop = stop + pace * (extreme - stop)
    if rising and stop > low:
        begins, rising, stop, extreme, pace = True, False, math.max(high, extreme), low, start
    elif not rising and stop < high:
        begins, rising, stop, extreme, pace = True, True, math.min(low, extreme), high, start
    if not begins and (high > extreme if rising else low < extreme):
        extreme = high if rising else low
        pace = math.min(pace + increment, maximum)
    older = 2 if bar_index > 1 else 1
    stop = math.min(stop, low[1], low[older]) if rising else math.max(stop, high[1], high[older])
    return stop


def middle(length):
    return (ta.highest(high, length) + ta.lowest(low, length)) / 2


def deviation(length):
    """The mean, and the deviation in two passes: ta.stdev loses digits where the spread is small against the price."""
    mean = 0.0
    for age in range(length):
        mean += close[age] / length
    squares = 0.0
    for age in range(length):
        squares += math.pow(close[age] - mean, 2)
    return mean, math.sqrt(squares / length)


def misses(length):
    """The root of the mean square distance from the least-squares line, its end and its rise."""
    end = ta.linreg(close, length, 0)
    rise = end - ta.linreg(close, length, 1)
    squares = 0.0
    for age in range(length):
        squares += math.pow(close[age] - (end - rise * age), 2)
    return end, rise, squares


@script.indicator("averages")
def main():
    bb_middle, bb_upper, bb_lower = ta.bb(close, of("bbands.period", 20), of("bbands.std_dev", 2.0))
    percent_mean, percent_deviation = deviation(of("percent_b.length", 20))
    width_mean, width_deviation = deviation(of("bb_width.length", 20))
    _, spread = deviation(of("std_dev.length", 5))
    kc_middle = ta.ema(close, of("keltner.length", 20))
    kc_room = of("keltner.multiplier", 1.5) * ta.atr(of("keltner.atr_length", 10))
    conversion = middle(of("ichimoku.conversion", 9))
    base = middle(of("ichimoku.base", 26))
    ahead = of("ichimoku.displacement", 26) - 1
    stop_room = of("chande_kroll.multiplier", 1.0) * ta.atr(of("chande_kroll.atr_length", 10))
    first_short = ta.highest(high, of("chande_kroll.atr_length", 10)) - stop_room
    first_long = ta.lowest(low, of("chande_kroll.atr_length", 10)) + stop_room
    room = of("chandelier.multiplier", 3.0) * ta.atr(of("chandelier.length", 22))
    channel_length = of("regression_channel.length", 50)
    channel, channel_rise, channel_squares = misses(channel_length)
    channel_width = of("regression_channel.deviations", 2.0) * math.sqrt(channel_squares / channel_length)
    bands_length = of("std_error_bands.length", 21)
    bands_end, _, bands_squares = misses(bands_length)
    bands_error = math.sqrt(bands_squares / (bands_length - 2))
    bands_average = of("std_error_bands.average", 3)
    bands_method = of("std_error_bands.method", "simple")
    bands_middle = averaged(bands_end, bands_average, bands_method)
    bands_width = of("std_error_bands.errors", 2.0) * averaged(bands_error, bands_average, bands_method)
    _, slope, _ = misses(of("linreg_slope.length", 14))
    error_length = of("std_error.length", 14)
    _, _, error_squares = misses(error_length)
    ha_close = (open + high + low + close) / 4
    ha_open: Series[float] = 0.0
    before: Series[float] = ha_close
    ha_open = (open + close) / 2 if na(ha_open[1]) else (ha_open[1] + before[1]) / 2
    basis = averaged(close, of("envelope.length", 20), of("envelope.method", "simple"))
    supertrend, _ = ta.supertrend(of("supertrend.multiplier", 3.0), of("supertrend.length", 10))
    return {
        "ema_line.EMA": ta.ema(close, of("ema_line.length", 9)),
        "ema_stack.fast": ta.ema(close, of("ema_stack.fast", 8)),
        "ema_stack.medium": ta.ema(close, of("ema_stack.medium", 21)),
        "ema_stack.slow": ta.ema(close, of("ema_stack.slow", 50)),
        "ema_stack.trend": ta.ema(close, of("ema_stack.trend", 200)),
        "sma.SMA": ta.sma(close, of("sma.length", 10)),
        "smma.SMMA": ta.rma(close, of("smma.length", 7)),
        "wma.WMA": ta.wma(close, of("wma.length", 9)),
        "hma.HMA": ta.hma(close, of("hma.length", 9)),
        "dema.DEMA": double(of("dema.length", 9)),
        "tema.TEMA": triple(of("tema.length", 9)),
        "vwma.VWMA": ta.vwma(close, of("vwma.length", 20)),
        "alma.ALMA": ta.alma(close, of("alma.length", 9), of("alma.offset", 0.85), of("alma.sigma", 6.0)),
        "hamming.Hamming": hamming(of("hamming.length", 10)),
        "mcginley.McGinley": mcginley(of("mcginley.length", 10)),
        "linreg.LinReg": ta.linreg(close, of("linreg.length", 25), 0),
        "linreg_slope.Slope": slope,
        "std_error.StdErr": math.sqrt(error_squares / (error_length - 2)),
        "std_error_bands.upper": bands_middle + bands_width,
        "std_error_bands.middle": bands_middle,
        "std_error_bands.lower": bands_middle - bands_width,
        "regression_channel.middle": channel,
        "regression_channel.upper": channel + channel_width,
        "regression_channel.lower": channel - channel_width,
        "regression_channel.slope": 100 * channel_rise / close,
        "bbands.upper": bb_upper,
        "bbands.middle": bb_middle,
        "bbands.lower": bb_lower,
        "percent_b.%b": (close - percent_mean) / (2 * of("percent_b.std_dev", 2.0) * percent_deviation) + 0.5,
        "bb_width.BBW": 2 * of("bb_width.std_dev", 2.0) * width_deviation / width_mean,
        "std_dev.StdDev": of("std_dev.deviations", 1.0) * spread,
        "keltner.upper": kc_middle + kc_room,
        "keltner.middle": kc_middle,
        "keltner.lower": kc_middle - kc_room,
        "donchian.upper": ta.highest(high, of("donchian.length", 20)),
        "donchian.middle": middle(of("donchian.length", 20)),
        "donchian.lower": ta.lowest(low, of("donchian.length", 20)),
        "price_channel.upper": ta.highest(of("price_channel.length", 20)),
        "price_channel.lower": ta.lowest(of("price_channel.length", 20)),
        "ma_channel.upper": delayed(ta.sma(high, of("ma_channel.upper_length", 20)), of("ma_channel.upper_offset", 0)),
        "ma_channel.lower": delayed(ta.sma(low, of("ma_channel.lower_length", 20)), of("ma_channel.lower_offset", 0)),
        "envelope.upper": basis * (1 + of("envelope.upper", 2.0) / 100),
        "envelope.middle": basis,
        "envelope.lower": basis * (1 - of("envelope.lower", 2.0) / 100),
        "alligator.Jaw": delayed(ta.rma(hl2, of("alligator.jaw", 21)), of("alligator.jaw_offset", 8)),
        "alligator.Teeth": delayed(ta.rma(hl2, of("alligator.teeth", 13)), of("alligator.teeth_offset", 5)),
        "alligator.Lips": delayed(ta.rma(hl2, of("alligator.lips", 8)), of("alligator.lips_offset", 3)),
        "ichimoku.Conversion": conversion,
        "ichimoku.Base": base,
        "ichimoku.Span A": delayed((conversion + base) / 2, ahead),
        "ichimoku.Span B": delayed(middle(of("ichimoku.span", 52)), ahead),
        "chande_kroll.short": ta.highest(first_short, of("chande_kroll.stop_length", 9)),
        "chande_kroll.long": ta.lowest(first_long, of("chande_kroll.stop_length", 9)),
        "chandelier.long": ta.highest(high, of("chandelier.length", 22)) - room,
        "chandelier.short": ta.lowest(low, of("chandelier.length", 22)) + room,
        # TradingView's function returns 0 at the first bar, and na until there is an average range.
        "supertrend.Supertrend": na_float if bar_index == 0 else supertrend,
        "sar.SAR": sar(of("sar.start", 0.02), of("sar.increment", 0.02), of("sar.maximum", 0.2)),
        "atr.ATR": ta.atr(of("atr.length", 14)),
        "heikin_ashi.open": ha_open,
        "heikin_ashi.high": math.max(high, ha_open, ha_close),
        "heikin_ashi.low": math.min(low, ha_open, ha_close),
        "heikin_ashi.close": ha_close,
    }
