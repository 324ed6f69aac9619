"""Files of a market in which a strategy that buys low has an edge: years of days, and the minutes of the last days."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

DAY = 86400
FIRST = int(datetime(2017, 1, 1, tzinfo=UTC).timestamp())
DAYS = 3300
FOUND = "2025-04-01T00:05:00Z"
"""3,012 days after the first: enough to search, and the rest is forward."""
LATER = "2026-01-10T00:05:00Z"
BUYS_LOW: dict[str, Any] = {
    "name": "BUYS_LOW",
    "description": "Buys after a fall, sells after a rise",
    "indicators": [{"id": "rsi", "type": "RSI", "params": {"length": "${n}"}}],
    "entry_conditions": [{"type": "UNDER", "indicator": "rsi", "params": {"value": 35}}],
    "exit_conditions": [{"type": "OVER", "indicator": "rsi", "params": {"value": 55}}],
    "parameters": [{"name": "n", "type": "INTEGER", "min": 3, "max": 10, "defaultValue": 5}],
    "reasoning": "prices here return to their mean",
}


def closes(count: int = DAYS) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The closes of all days."""
    chance = np.random.default_rng(5)
    away = np.zeros(count)
    for at in range(1, count):
        away[at] = 0.7 * away[at - 1] + chance.normal(0, 0.02)
    return np.round(100 * np.exp(away), 4)


def days_file(folder: Path, name: str = "BTC_USD_1d.csv", first: int = FIRST, step: int = DAY) -> Path:
    """All days, or as many bars of another length from another time on."""
    close = closes()
    opened = np.concatenate(([100.0], close[:-1]))
    rows = ["time,open,high,low,close,volume"]
    for at, (o, c) in enumerate(zip(opened.tolist(), close.tolist(), strict=True)):
        day = datetime.fromtimestamp(first + at * step, UTC).strftime("%Y-%m-%d" if step == DAY else "%Y-%m-%dT%H:%MZ")
        rows.append(f"{day},{o},{max(o, c) * 1.001:.4f},{min(o, c) * 0.999:.4f},{c},1000000")
    path = folder / name
    path.write_text("\n".join(rows) + "\n")
    return path


def minutes_file(folder: Path, day: str, price: float, count: int = 180) -> Path:
    """Minutes of a quiet market from 23:00 of the day before on, around a price."""
    start = int(datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp()) - 3600
    rows = ["time,open,high,low,close,volume"]
    for at in range(count):
        time = datetime.fromtimestamp(start + 60 * at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        rows.append(f"{time},{price:.4f},{price * 1.0005:.4f},{price * 0.9995:.4f},{price:.4f},5000")
    path = folder / f"BTC_USD_{day}.csv"
    path.write_text("\n".join(rows) + "\n")
    return path
