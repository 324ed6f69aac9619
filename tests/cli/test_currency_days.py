"""A home in which an earlier version has stored days of a currency, and the command that mends it."""

from __future__ import annotations

from contextlib import closing
from datetime import date, timedelta
from pathlib import Path

from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores.parquet import ParquetStore
from tests.client import run
from tests.market.walks import FOREX, at
from tests.stores.old_currency_days import make_old
from tests.stores.samples import EVER, bars

IMPORTED = Source(Origin.IMPORTED, "import")
DAYS = [date(2025, 3, 3) + timedelta(n) for n in range(14)]
FILE = "Date,Open,High,Low,Close\n" + "".join(
    f"{day},1.1,1.{20 + n},1.0,1.15\n" for n, day in enumerate(DAYS) if day.weekday() < 5
)


def test_doctor_names_old_days_and_importing_the_file_again_mends_them(tmp_path: Path) -> None:
    home, file = tmp_path / "home", tmp_path / "EURUSD.csv"
    file.write_text(FILE)
    opens = [at(f"2025-03-0{n}T22:00Z") for n in range(2, 7)] + [at(f"2025-03-{n:02}T21:00Z") for n in range(9, 14)]
    stored = bars(Series(FOREX, Timeframe.D1), opens)
    with closing(ParquetStore(home / "data")) as store:
        store.write([stored], IMPORTED)
    old = make_old(home / "data", stored, IMPORTED)

    doctor = run(home, "doctor", FEED="none")
    imported = run(home, "import", str(file), "--symbol", "EURUSD", FEED="none")

    assert "set aside EUR/USD 1d: an earlier version stored it in days from midnight UTC" in doctor.stdout
    assert "otherwise openbell import FILE --symbol S" in doctor.stdout
    assert imported.returncode == 0, imported.stderr
    assert "10 bars of EUR/USD, 1d, 2025-03-02T22:00:00+00:00 to 2025-03-13T21:00:00+00:00" in imported.stdout
    with closing(ParquetStore(home / "data")) as store:
        found = store.read(stored.series, 0, EVER)
        assert (found.time.tolist(), found.high.tolist()[-1]) == (opens, 1.31)
    assert len(list(old.parent.glob("*.corrupt-*"))) == 1
