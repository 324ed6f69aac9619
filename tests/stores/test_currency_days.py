"""Days of currencies in the embedded store: counts."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from openbell.market.bars import resample
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.port import Span
from tests.market.walks import CRYPTO, FOREX
from tests.stores.model import assert_same
from tests.stores.native_samples import END, START
from tests.stores.samples import DAY, LIVE, MINUTE, OCTOBER, minutes_of, run

SPAN = Span(START, END)
EUR, BTC = Series(FOREX, Timeframe.D1), Series(CRYPTO, Timeframe.D1)


def test_days_that_cross_the_end_of_a_month_are_counted_once(tmp_path: Path) -> None:
    """The day of 1 October begins in September, and files hold minutes of one UTC month each."""
    minutes = run(minutes_of("EUR/USD"), OCTOBER - 3 * DAY, 6 * 1440)
    with closing(ParquetStore(tmp_path)) as store:
        store.write([minutes], LIVE)
        for timeframe in (Timeframe.D1, Timeframe.D2, Timeframe.W1, Timeframe.MONTH):
            for end in range(OCTOBER - 2 * DAY, OCTOBER + 3 * DAY, 5 * 3600 + 7 * MINUTE):
                expected = resample(minutes, timeframe, end)
                assert store.count(minutes.series, timeframe, end) == len(expected)
                assert_same(store.resampled(minutes.series, timeframe, 10, end), expected)
