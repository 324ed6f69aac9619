"""Writes small files and reads them as `openbell import` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from openbell.desk.importing import FileSeries, ImportOptions, read
from openbell.desk.importing.keys import zone_of
from openbell.market.bars import Bars
from openbell.market.errors import BadBars
from openbell.market.instruments import parse
from openbell.market.provenance import Adjustment
from openbell.market.timeframes import SHORT

NOW = 1_760_000_040.0
"""2025-10-09T08:54:00Z, a Thursday."""


def at(text: str) -> int:
    """Epoch seconds of a UTC time."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def rows_of(bars: Bars) -> list[tuple[Any, ...]]:
    return list(zip(*(column.tolist() for column in bars.columns()), strict=True))


def reasons(error: BadBars) -> list[tuple[int, str]]:
    first: list[tuple[int, str]] = error.details["first"]
    return first


@dataclass
class Files:
    """A folder of files."""

    folder: Path

    def write(self, content: str | bytes, name: str = "bars.csv") -> Path:
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def series(
        self,
        content: str | bytes,
        name: str = "bars.csv",
        symbol: str | None = "AAPL",
        now: float = NOW,
        *,
        timeframe: str | None = None,
        tz: str | None = None,
        date_format: str | None = None,
        adjusted: bool = False,
        adjustment: Adjustment | None = None,
    ) -> list[FileSeries]:
        """All series of a file with this content."""
        options = ImportOptions(
            parse(symbol) if symbol else None,
            SHORT[timeframe] if timeframe else None,
            zone_of(tz) if tz else None,
            date_format,
            adjusted,
            adjustment=adjustment,
        )
        return read(self.write(content, name), options, now)

    def one(self, content: str | bytes, name: str = "bars.csv", symbol: str | None = "AAPL", **rest: Any) -> FileSeries:
        """The only series of a file."""
        (found,) = self.series(content, name, symbol, **rest)
        return found


def lines(*rows: str) -> str:
    return "\n".join(rows) + "\n"


def times_of(series: FileSeries) -> list[str]:
    """The keys of the bars, in UTC."""
    return [datetime.fromtimestamp(each, UTC).strftime("%Y-%m-%d %H:%M") for each in series.bars.time.tolist()]


def joined(*cells: object, by: str = ",") -> str:
    return by.join(map(str, cells))


def table(header: str, rows: Sequence[Sequence[object]]) -> str:
    return lines(header, *(joined(*row) for row in rows))
