"""@pyne

Volume, volatility, stops and levels: TradingView's functions, and the scripts of its indicators that are made of them.
"""

from pynecore.lib import (
    bar_index,
    close,
    high,
    hl2,
    hlc3,
    low,
    math,
    na,
    nz,
    open,
    script,
    syminfo,
    ta,
    timeframe,
    volume,
)
from pynecore.types import Persistent, Series, na_float

from tests.indicators.pine.chosen import of


def money():
    return 0.0 if high == low else (2 * close - low - high) / (high - low) * volume


def deviation(source, length):
    """Of the population, in two passes: ta.stdev loses digits where the spread is small against the price."""
    values: Series[float] = source
    mean = 0.0
    for age in range(length):
        mean += values[age] / length
    squares = 0.0
    for age in range(length):
        squares += math.pow(values[age] - mean, 2)
    return math.sqrt(squares / length)


def volatility_stop(length, factor):
    """TradingView's volStop()."""
    top: Persistent[float] = close
    bottom: Persistent[float] = close
    rising: Series[bool] = True
    stop: Persistent[float] = na_float
    room = nz(ta.atr(length) * factor, ta.tr(True))
    top = math.max(top, close)
    bottom = math.min(bottom, close)
    was_rising = True if bar_index == 0 else rising[1]
    if na(stop):
        stop = close
    elif was_rising:
        stop = math.max(stop, top - room)
    else:
        stop = math.min(stop, bottom + room)
    rising = close - stop >= 0.0
    if rising != was_rising:
        top = close
        bottom = close
        stop = top - room if rising else bottom + room
    return stop, 1.0 if rising else -1.0


def up_fractal(source, length):
    """TradingView's Williams Fractals for tops of a series."""
    values: Series[float] = source
    centre = values[length]
    after = True
    for age in range(length):
        after = after and values[age] < centre
    before = False
    for equal in range(5):
        level = True
        for age in range(equal):
            level = level and values[length + 1 + age] <= centre
        for age in range(length):
            level = level and values[length + 1 + equal + age] < centre
        before = before or level
    return after and before


def returns():
    return math.log(close / close[1])


def move():
    return math.sign(ta.change(close))


def histvol(length, convention):
    """A year has the trading days of a stock, the hours of a currency on five days of a week, or the hours of a coin."""
    bars_per_year = 252 if timeframe.isdaily else 24 * 5 * 52 if syminfo.type == "forex" else 24 * 365
    return 100 * deviation(returns(), length) * math.sqrt(365 if convention == "tradingview" else bars_per_year)


def kalman_volume(length, gain):
    """As chartgen's filter: a close that is not above counts as a fall, and the estimate starts at 0."""
    towards = na_float if na(close[2]) else volume if close > close[2] else -volume
    zone = ta.hma(towards, length) / ta.hma(volume, length)
    scaled = zone / ta.stdev(zone, 200)
    filtered: Series[float] = na_float
    filtered = nz(filtered[1]) + gain * (scaled - nz(filtered[1]))
    return filtered


@script.indicator("volume")
def main():
    day = timeframe.change("1D") or bar_index == 0
    change = ta.change(hlc3)
    signed = volume if change >= 0 else -volume
    klinger = ta.ema(signed, of("klinger.fast", 34)) - ta.ema(signed, of("klinger.slow", 55))
    long_average = ta.ema(volume, of("volume_oscillator.long", 10))
    usual: Series[float] = ta.sma(volume, of("relative_volume.length", 20))
    vwmacd = ta.vwma(close, of("volume_macd.fast", 12)) - ta.vwma(close, of("volume_macd.slow", 26))
    vwmacd_signal = ta.ema(vwmacd, of("volume_macd.signal", 9))
    span = of("pivot.period", "auto")
    if span == "auto":
        span = "month" if timeframe.isdaily else "week"
    session, week = timeframe.change("1D"), timeframe.change("1W")
    month, year = timeframe.change("1M"), timeframe.change("12M")
    anchor = session if span == "session" else week if span == "week" else month if span == "month" else year
    levels = ta.pivot_point_levels("Traditional", anchor)
    # TradingView's page on pivot points; PyneCore has the traditional levels for both kinds.
    classic, height = of("pivot.kind", "traditional") == "classic", levels[3] - levels[0]
    garman = 0.5 * math.pow(math.log(high / low), 2) - (2 * math.log(2) - 1) * math.pow(math.log(close / open), 2)
    stop, direction = volatility_stop(of("volatility_stop.length", 20), of("volatility_stop.multiplier", 2.0))
    filtered = kalman_volume(of("kalman_volume.vzo_length", 70), of("kalman_volume.k", 0.06))
    k = ta.sma(ta.stoch(close, high, low, of("rsi_mfi_stoch.stoch_length", 14)), of("rsi_mfi_stoch.k", 3))
    balanced, flowing, spread = of("volume_balance.length", 20), of("cmf.length", 20), of("volume_spread.length", 20)
    easily = of("ease_of_movement.divisor", 10000) * ta.change(hl2) * (high - low) / volume
    shown, aside = of("volatility_close.length", 10), of("fractals.length", 2)
    trendless, ranging = of("volatility_zero_trend.length", 10), of("volatility_ohlc.length", 10)
    moving = of("chaikin_volatility.length", 10)
    return {
        "mfi.MFI": ta.mfi(hlc3, of("mfi.length", 14)),
        "rsi_mfi_stoch.RSI": ta.rsi(close, of("rsi_mfi_stoch.rsi_length", 14)),
        "rsi_mfi_stoch.MFI": ta.mfi(hlc3, of("rsi_mfi_stoch.mfi_length", 14)),
        "rsi_mfi_stoch.StochK": k,
        "rsi_mfi_stoch.StochD": ta.sma(k, of("rsi_mfi_stoch.d", 3)),
        "cmf.CMF": math.sum(money(), flowing) / math.sum(volume, flowing),
        "chaikin.Chaikin": ta.ema(ta.accdist, of("chaikin.fast", 3)) - ta.ema(ta.accdist, of("chaikin.slow", 10)),
        "ad.AD": ta.accdist,
        "obv.OBV": ta.obv,
        "pvt.PVT": ta.pvt,
        "net_volume.Net": move() * volume,
        "force.Force": ta.ema(ta.change(close) * volume, of("force.length", 13)),
        "klinger.KVO": klinger,
        "klinger.Signal": ta.ema(klinger, of("klinger.signal", 13)),
        "ease_of_movement.EOM": ta.sma(easily, of("ease_of_movement.length", 14)),
        "volume_oscillator.Volume Osc": 100
        * (ta.ema(volume, of("volume_oscillator.short", 5)) - long_average)
        / long_average,
        "relative_volume.RVOL": volume / usual[1],
        "volume_balance.balance": 100
        * math.sum(volume * (move() + 1) / 2, balanced)
        / math.sum(volume + 0 * move(), balanced),
        "volume_macd.MACD": vwmacd,
        "volume_macd.Signal": vwmacd_signal,
        "volume_macd.Histogram": vwmacd - vwmacd_signal,
        "volume_spread.spread": (high - low) / ta.sma(high - low, spread),
        "volume_spread.volume": volume / ta.sma(volume, spread),
        "volume_spread.close_position": (close - low) / (high - low),
        "kalman_volume.KVF": filtered,
        "kalman_volume.Signal": ta.sma(filtered, of("kalman_volume.sig_length", 10)),
        "vwap.VWAP": ta.vwap(hlc3, day),
        "pivot.P": levels[0],
        "pivot.R1": levels[1],
        "pivot.S1": levels[2],
        "pivot.R2": levels[3],
        "pivot.S2": levels[4],
        "pivot.R3": levels[0] + 2 * height if classic else levels[5],
        "pivot.S3": levels[0] - 2 * height if classic else levels[6],
        "histvol.HV": histvol(of("histvol.length", 20), of("histvol.convention", "trading")),
        "volatility_close.Volatility": 100
        * deviation(returns(), shown)
        * math.sqrt(shown / (shown - 1) * of("volatility_close.days", 252)),
        "volatility_zero_trend.Volatility": 100
        * math.sqrt(math.sum(returns() * returns(), trendless) / trendless * of("volatility_zero_trend.days", 252)),
        "volatility_ohlc.Volatility": 100
        * math.sqrt(math.sum(garman, ranging) / ranging * of("volatility_ohlc.days", 252)),
        "chaikin_volatility.Volatility": ta.roc(ta.ema(high - low, moving), of("chaikin_volatility.roc_length", 10)),
        "volatility_stop.stop": stop,
        "volatility_stop.direction": direction,
        "fractals.up": ta.valuewhen(up_fractal(high, aside), high[aside], 0),
        "fractals.down": ta.valuewhen(up_fractal(-low, aside), low[aside], 0),
    }
