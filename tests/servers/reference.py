"""The contract's numbers, computed independently: plain Python, no code of the project's."""

from __future__ import annotations

from itertools import pairwise
from math import sqrt


def ema(values: list[float], length: int) -> list[float | None]:
    out: list[float | None] = [None] * len(values)
    if len(values) < length:
        return out
    current = sum(values[:length]) / length
    out[length - 1] = current
    for index in range(length, len(values)):
        current = (2 * values[index] + (length - 1) * current) / (length + 1)
        out[index] = current
    return out


def rsi(values: list[float], length: int = 14) -> list[float | None]:
    out: list[float | None] = [None] * len(values)
    changes = [b - a for a, b in pairwise(values)]
    if len(changes) < length:
        return out
    gain = sum(max(change, 0) for change in changes[:length]) / length
    loss = sum(max(-change, 0) for change in changes[:length]) / length
    out[length] = 50.0 if gain == loss == 0 else 100 - 100 / (1 + gain / loss) if loss else 100.0
    for index in range(length, len(changes)):
        gain = (gain * (length - 1) + max(changes[index], 0)) / length
        loss = (loss * (length - 1) + max(-changes[index], 0)) / length
        out[index + 1] = 50.0 if gain == loss == 0 else 100 - 100 / (1 + gain / loss) if loss else 100.0
    return out


def snapshot(closes: list[float]) -> tuple[dict[str, float], dict[str, float]]:
    """The previous and the last bar's numbers."""
    fast, slow = ema(closes, 12), ema(closes, 26)
    line = [f - s for f, s in zip(fast, slow, strict=True) if f is not None and s is not None]
    trigger = ema(line, 9)
    nine, strength = ema(closes, 9), rsi(closes)

    def at(back: int) -> dict[str, float]:
        end = len(closes) - back
        ten, twenty = closes[end - 10 : end], closes[end - 20 : end]
        middle = sum(twenty) / 20
        deviation = sqrt(sum((each - middle) ** 2 for each in twenty) / 20)
        macd, signal, nine_, strength_ = line[-1 - back], trigger[-1 - back], nine[-1 - back], strength[-1 - back]
        assert signal is not None
        assert nine_ is not None
        assert strength_ is not None
        return {
            "price": closes[end - 1],
            "ema9": nine_,
            "ma10": sum(ten) / 10,
            "macd": macd,
            "signal": signal,
            "hist": macd - signal,
            "rsi": strength_,
            "bb_upper": middle + 2 * deviation,
            "bb_middle": middle,
            "bb_lower": middle - 2 * deviation,
        }

    return at(1), at(0)


def crossings(prev: dict[str, float], last: dict[str, float]) -> dict[str, bool]:
    """The contract's section 3, word for word."""
    return {
        "macd_cross_up": prev["macd"] <= prev["signal"] and last["macd"] > last["signal"],
        "macd_cross_dn": prev["macd"] >= prev["signal"] and last["macd"] < last["signal"],
        "ema_support_lost": prev["price"] >= prev["ema9"] and last["price"] < last["ema9"],
        "ema_reclaim": prev["price"] <= prev["ema9"] and last["price"] > last["ema9"],
        "rsi_overbought": last["rsi"] >= 70,
        "rsi_oversold": last["rsi"] <= 30,
        "bb_squeeze": (last["bb_upper"] - last["bb_lower"]) / last["bb_middle"] < 0.04,
        "bb_breakout_up": last["price"] > last["bb_upper"],
        "bb_breakout_dn": last["price"] < last["bb_lower"],
    }
