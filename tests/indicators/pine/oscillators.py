"""@pyne

Oscillators of the price: TradingView's functions, and the scripts of its indicators that are made of them.
"""

from pynecore.lib import close, high, hl2, hlc3, low, math, nz, open, script, ta
from pynecore.types import Series

from tests.indicators.pine.chosen import of


def rate(number, roc_length, length):
    return ta.sma(ta.roc(close, of(f"kst.roc{number}", roc_length)), of(f"kst.sma{number}", length))


def pressure(buying, reach, length):
    return math.sum(buying, length) / math.sum(reach, length)


def streak():
    count: Series[float] = 0.0
    if close == close[1]:
        count = 0.0
    elif close > close[1]:
        count = 1.0 if nz(count[1]) <= 0 else nz(count[1]) + 1
    else:
        count = -1.0 if nz(count[1]) >= 0 else nz(count[1]) - 1
    return count


def limited(value):
    return 0.999 if value > 0.99 else -0.999 if value < -0.99 else value


def fisher(length):
    value: Series[float] = 0.0
    fish: Series[float] = 0.0
    top = ta.highest(hl2, length)
    bottom = ta.lowest(hl2, length)
    value = limited(0.66 * ((hl2 - bottom) / (top - bottom) - 0.5) + 0.67 * nz(value[1]))
    fish = 0.5 * math.log((1 + value) / (1 - value)) + 0.5 * nz(fish[1])
    return fish, fish[1]


def chop_zone():
    average: Series[float] = ta.ema(close, 34)
    top = ta.highest(30)
    bottom = ta.lowest(30)
    step = (average[1] - average) / hlc3 * (25 / (top - bottom) * bottom)
    angle = 180 * math.acos(1 / math.sqrt(1 + step * step)) / math.pi
    return -angle if step > 0 else angle


def correlation(length):
    """Of the close with the bar number, in two passes: ta.correlation loses digits where the close hardly moves."""
    mean = 0.0
    for age in range(length):
        mean += close[age] / length
    along = 0.0
    squares = 0.0
    places = 0.0
    for age in range(length):
        place = (length - 1) / 2 - age
        along += place * (close[age] - mean)
        squares += math.pow(close[age] - mean, 2)
        places += place * place
    return along / math.sqrt(squares * places)


def waves(channel, length):
    average = ta.ema(hlc3, channel)
    distance = ta.ema(math.abs(hlc3 - average), channel)
    fast = ta.ema((hlc3 - average) / (0.015 * distance), length)
    return fast, ta.sma(fast, 3)


def squeeze(length):
    centre = math.avg(math.avg(ta.highest(high, length), ta.lowest(low, length)), ta.sma(close, length))
    return ta.linreg(close - centre, length, 0)


def swing(limit):
    before = close[1]
    up = math.abs(high - before)
    down = math.abs(low - before)
    reach = high - low
    if up >= down and up >= reach:
        reach = up - 0.5 * down
    elif down >= up and down >= reach:
        reach = down - 0.5 * up
    reach += 0.25 * math.abs(before - open[1])
    move = close - before + 0.5 * (close - open) + 0.25 * (before - open[1])
    return 50 * move / reach * math.max(up, down) / limit


@script.indicator("oscillators")
def main():
    macd, macd_signal, macd_histogram = ta.macd(close, of("macd.fast", 12), of("macd.slow", 26), of("macd.signal", 9))
    k = ta.sma(ta.stoch(close, high, low, of("stoch.k", 14)), of("stoch.smooth", 3))
    rsi14 = ta.rsi(close, 14)
    inner = ta.rsi(close, of("stoch_rsi.rsi_length", 14))
    rsi_k = ta.sma(ta.stoch(inner, inner, inner, of("stoch_rsi.stoch_length", 14)), of("stoch_rsi.k", 3))
    log_rsi = ta.rsi(math.log(close), 14)
    log_k = ta.sma(ta.stoch(log_rsi, log_rsi, log_rsi, 14), 3)
    tsi = 100 * ta.tsi(close, of("tsi.short", 13), of("tsi.long", 25))
    ergodic = ta.tsi(close, of("smi_ergodic.short", 5), of("smi_ergodic.long", 20))
    swinging = ta.tsi(close, of("smi_oscillator.short", 5), of("smi_oscillator.long", 20))
    thrice = of("trix.length", 18)
    trix = 10000 * ta.change(ta.ema(ta.ema(ta.ema(math.log(close), thrice), thrice), thrice))
    slow = ta.ema(close, of("ppo.slow", 26))
    ppo = (ta.ema(close, of("ppo.fast", 12)) - slow) / slow * 100
    ppo_signal = ta.ema(ppo, of("ppo.signal", 9))
    kst = rate(1, 10, 10) + 2 * rate(2, 15, 10) + 3 * rate(3, 20, 10) + 4 * rate(4, 30, 15)
    dpo_length = of("dpo.length", 21)
    dpo_average: Series[float] = ta.sma(close, dpo_length)
    top = math.max(high, close[1])
    bottom = math.min(low, close[1])
    buying = close - bottom
    reach = top - bottom
    quick = pressure(buying, reach, of("ultimate.fast", 7))
    medium = pressure(buying, reach, of("ultimate.middle", 14))
    calm = pressure(buying, reach, of("ultimate.slow", 28))
    fish, trigger = fisher(of("fisher.length", 9))
    ray = ta.ema(close, of("elder_ray.length", 13))
    ranges = ta.ema(high - low, of("mass_index.fast", 9))
    ratio = ranges / ta.ema(ranges, of("mass_index.fast", 9))
    turns = of("vortex.length", 14)
    true_ranges = math.sum(ta.atr(1), turns)
    chop = of("choppiness.length", 14)
    chopped = math.sum(ta.atr(1), chop) / (ta.highest(chop) - ta.lowest(chop))
    plus, minus, adx = ta.dmi(of("adx.length", 14), of("adx.length", 14))
    vigor_length = of("rvi.length", 10)
    vigor = math.sum(ta.swma(close - open), vigor_length) / math.sum(ta.swma(high - low), vigor_length)
    fast_wave, slow_wave = waves(of("wavetrend.channel_length", 9), of("wavetrend.average_length", 12))
    cipher_fast, cipher_slow = waves(of("cipher_b.wt_channel_length", 9), of("cipher_b.wt_average_length", 12))
    rank = ta.percentrank(ta.roc(close, 1), of("connors_rsi.rank_length", 100))
    strength = ta.rsi(close, of("connors_rsi.rsi_length", 3))
    crsi = math.avg(strength, ta.rsi(streak(), of("connors_rsi.streak_length", 2)), rank)
    ages = of("aroon.length", 14)
    coppock = ta.roc(close, of("coppock.long_roc", 14)) + ta.roc(close, of("coppock.short_roc", 11))
    none = 0.0 * ta.change(close)  # na at the first bar, which neither rises nor falls
    rise = none + (1.0 if close > close[1] else 0.0)
    fall = none + (1.0 if close < close[1] else 0.0)
    rises = math.sum(rise, of("advance_decline.length", 10))
    falls = math.sum(fall, of("advance_decline.length", 10))
    majority = of("majority_rule.length", 14)
    return {
        "rsi.RSI": ta.rsi(close, of("rsi.length", 14)),
        "macd.MACD": macd,
        "macd.Signal": macd_signal,
        "macd.Histogram": macd_histogram,
        "stoch.K": k,
        "stoch.D": ta.sma(k, of("stoch.d", 3)),
        "stoch_rsi.K": rsi_k,
        "stoch_rsi.D": ta.sma(rsi_k, of("stoch_rsi.d", 3)),
        "roc.ROC": ta.roc(close, of("roc.length", 14)),
        "momentum.Momentum": ta.mom(close, of("momentum.length", 10)),
        "cci.CCI": ta.cci(hlc3, of("cci.length", 20)),
        "williams_r.%R": ta.wpr(of("williams_r.length", 14)),
        "cmo.CMO": ta.cmo(close, of("cmo.length", 9)),
        "tsi.TSI": tsi,
        "tsi.Signal": ta.ema(tsi, of("tsi.signal", 13)),
        "smi_ergodic.SMI": ergodic,
        "smi_ergodic.Signal": ta.ema(ergodic, of("smi_ergodic.signal", 5)),
        "smi_oscillator.Histogram": swinging - ta.ema(swinging, of("smi_oscillator.signal", 5)),
        "trix.TRIX": trix,
        "trix.Signal": ta.ema(trix, of("trix.signal", 9)),
        "ppo.PPO": ppo,
        "ppo.Signal": ppo_signal,
        "ppo.Histogram": ppo - ppo_signal,
        "kst.KST": kst,
        "kst.Signal": ta.sma(kst, of("kst.signal", 9)),
        "dpo.DPO": close - dpo_average[dpo_length // 2 + 1],
        "ultimate.UO": 100 * (4 * quick + 2 * medium + calm) / 7,
        "awesome.AO": ta.sma(hl2, of("awesome.fast", 5)) - ta.sma(hl2, of("awesome.slow", 34)),
        "aroon.Up": 100 * (ta.highestbars(high, ages + 1) + ages) / ages,
        "aroon.Down": 100 * (ta.lowestbars(low, ages + 1) + ages) / ages,
        "coppock.Coppock": ta.wma(coppock, of("coppock.wma_length", 10)),
        "connors_rsi.CRSI": crsi,
        "fisher.Fisher": fish,
        "fisher.Trigger": trigger,
        "elder_ray.Bull": high - ray,
        "elder_ray.Bear": low - ray,
        "mass_index.Mass": math.sum(ratio, of("mass_index.length", 10)),
        "vortex.VI+": math.sum(math.abs(high - low[1]), turns) / true_ranges,
        "vortex.VI-": math.sum(math.abs(low - high[1]), turns) / true_ranges,
        "choppiness.CHOP": 100 * math.log10(chopped) / math.log10(chop),
        "adx.ADX": adx,
        "adx.+DI": plus,
        "adx.-DI": minus,
        "rvi.RVI": vigor,
        "rvi.Signal": ta.swma(vigor),
        "bop.BOP": (close - open) / (high - low),
        "chop_zone.Angle": chop_zone(),
        "trend_strength.TSI": correlation(of("trend_strength.length", 9)),
        "wavetrend.WT1": fast_wave,
        "wavetrend.WT2": slow_wave,
        "wavetrend.WT1-WT2": fast_wave - slow_wave,
        "cipher_b.WT1": cipher_fast,
        "cipher_b.WT2": cipher_slow,
        "cipher_b.WT1-WT2": cipher_fast - cipher_slow,
        "cipher_b.RSI": rsi14,
        "cipher_b.StochK": log_k,
        "cipher_b.StochD": ta.sma(log_k, 3),
        "cipher_b.MoneyFlow": ta.sma(nz((close - open) / (high - low)) * 150, 60) - 2.5,
        "squeeze.Momentum": squeeze(of("squeeze.length", 20)),
        "asi.ASI": ta.cum(nz(swing(of("asi.limit", 10.0)))),
        "advance_decline.A/D": rises / math.max(falls, 1.0),
        "majority_rule.Majority": 100 * math.sum(rise, majority) / majority,
    }
