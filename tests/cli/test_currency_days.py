"""`openbell import` of a file of days of a currency."""

from __future__ import annotations

from contextlib import closing
from datetime import date, timedelta
from pathlib import Path

from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores.parquet.store import ParquetStore
from tests.client import run
from tests.market.walks import FOREX, at
from tests.stores.samples import EVER

DAYS = [date(2025, 3, 3) + timedelta(n) for n in range(14)]
FILE = "Date,Open,High,Low,Close\n" + "".join(
    f"{day},1.1,1.{20 + n},1.0,1.15\n" for n, day in enumerate(DAYS) if day.weekday() < 5
)


def test_a_file_of_dates_is_imported_as_trading_days(tmp_path: Path) -> None:
    home, file = tmp_path / "home", tmp_path / "EURUSD.csv"
    file.write_text(FILE)
    opens = [at(f"2025-03-0{n}T22:00Z") for n in range(2, 7)] + [at(f"2025-03-{n:02}T21:00Z") for n in range(9, 14)]

    imported = run(home, "import", str(file), "--symbol", "EURUSD", FEED="none")

    assert imported.returncode == 0, imported.stderr
    assert "10 bars of EUR/USD, 1d, 2025-03-02T22:00:00+00:00 to 2025-03-13T21:00:00+00:00" in imported.stdout
    with closing(ParquetStore(home / "data")) as store:
        found = store.read(Series(FOREX, Timeframe.D1), 0, EVER)
        assert (found.time.tolist(), found.high.tolist()[-1]) == (opens, 1.31)
