"""Days of currencies in the embedded store: counts, and homes of the version that stored them from midnight UTC."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from openbell.market.bars import resample
from openbell.market.provenance import Source
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores.buffer_schema import OLD_DAYS
from openbell.stores.parquet import ParquetStore
from openbell.stores.port import Span
from openbell.stores.views import ParquetView
from tests.market.walks import CRYPTO, FOREX
from tests.stores.model import assert_same
from tests.stores.native_samples import END, START, whole
from tests.stores.old_currency_days import make_old
from tests.stores.samples import DAY, EVER, FILE, LIVE, MINUTE, OCTOBER, minutes_of, run

SPAN = Span(START, END)
EUR, BTC = Series(FOREX, Timeframe.D1), Series(CRYPTO, Timeframe.D1)


def old_home(folder: Path, timeframe: Timeframe, source: Source) -> Path:
    """Write days or weeks of a currency and days of a coin, and make the home an old one. Returns the currency's file."""
    days, coins = whole("EUR/USD", timeframe), whole("BTC/USD", Timeframe.D1)
    with closing(ParquetStore(folder)) as store:
        store.write([days], source, covers=SPAN)
        store.write([coins], source, covers=SPAN)
    return make_old(folder, days, source)


@pytest.mark.parametrize(("timeframe", "source"), [(Timeframe.D1, LIVE), (Timeframe.W1, FILE)])
def test_old_days_are_reported_never_read_and_replaced(tmp_path: Path, timeframe: Timeframe, source: Source) -> None:
    file = old_home(tmp_path, timeframe, source)
    series, days = EUR.at(timeframe), whole("EUR/USD", timeframe)

    with closing(ParquetStore(tmp_path)) as store:
        assert [(problem.path, problem.reason) for problem in store.problems()] == [(series.name, OLD_DAYS)]
        assert store.gaps(series, SPAN) == [SPAN]
        assert store.newest(timeframe, EVER).keys() == ({CRYPTO} if timeframe is Timeframe.D1 else set())
        store.write([days.tail(3)], source, covers=SPAN)

        assert_same(store.read(series, 0, EVER), days.tail(3))
        assert store.count(series, timeframe, EVER) == 3
        assert store.gaps(series, SPAN) == []
        assert_same(store.newest(timeframe, EVER)[FOREX], days.tail(1))
        (aside,) = file.parent.glob("*.corrupt-*")
        assert store.problems()[1].path == str(aside)
        assert OLD_DAYS in store.problems()[1].reason
        assert_same(store.read(BTC, 0, EVER), whole("BTC/USD", Timeframe.D1))
        assert store.gaps(BTC, SPAN) == []
    with closing(ParquetStore(tmp_path)) as again:
        assert len(again.problems()) == 2, "reported once"
        assert_same(again.read(series, 0, EVER), days.tail(3))


@pytest.mark.parametrize("without_buffer", [False, True])
def test_a_read_sets_old_days_aside(tmp_path: Path, without_buffer: bool) -> None:
    file = old_home(tmp_path, Timeframe.D1, FILE)
    if without_buffer:
        for each in tmp_path.glob("buffer.sqlite*"):
            each.unlink()

    with closing(ParquetStore(tmp_path)) as store:
        assert len(store.tail(EUR, 5, EVER)) == store.count(EUR, Timeframe.W1, EVER) == 0
        assert EUR not in store.stored()
        assert OLD_DAYS in store.problems()[-1].reason
    assert not file.exists()


def test_a_read_only_home_leaves_old_days_in_place_unread(tmp_path: Path) -> None:
    file = old_home(tmp_path, Timeframe.D1, FILE)

    with closing(ParquetView(tmp_path)) as store:
        assert len(store.read(EUR, 0, EVER)) == 0
        assert store.gaps(EUR, SPAN) == [SPAN]
        assert any(OLD_DAYS in problem.reason for problem in store.problems())
        assert len(store.read(BTC, 0, EVER)) > 0
    assert file.exists()


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
