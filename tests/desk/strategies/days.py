"""Files of the market with an edge, imported as they are or with corrected prices."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from tests.client import run
from tests.servers.reverting_market import DAY, DAYS, days_file

BTC = "BTC/USD"
Rows = list[str]


def same(rows: Rows) -> Rows:
    return rows


def corrected(rows: Rows) -> Rows:
    """The first half of the days with prices of other days."""
    half = len(rows) // 2
    prices = [row.partition(",")[2] for row in rows[:half]]
    order = np.random.default_rng(3).permutation(half).tolist()
    return [f"{row.partition(',')[0]},{prices[at]}" for row, at in zip(rows[:half], order, strict=True)] + rows[half:]


def shuffled(rows: Rows) -> Rows:
    """All days with prices of other days: nothing can be predicted."""
    return [*corrected(rows + rows)[: len(rows)]]


def imported(home: Path, change: Callable[[Rows], Rows] = same, first: int | None = None) -> None:
    """Import the days of the market with an edge, with their rows changed; by default the last one is yesterday."""
    today = int(datetime.now(UTC).timestamp()) // DAY * DAY
    path = days_file(home.parent, first=today - DAY * DAYS if first is None else first)
    header, *rows = path.read_text().splitlines()
    path.write_text("\n".join([header, *change(rows), ""]))
    done = run(home, "import", str(path), "--symbol", BTC, FEED="none")
    assert done.returncode == 0, done.stderr
