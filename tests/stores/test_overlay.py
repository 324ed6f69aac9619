"""A private store over a read-only home: the contract of every store, and that the home is not changed."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import pytest

from openbell.market.bars import empty_of, merge, resample
from openbell.market.errors import LeaseHeld, SourceConflict, StoreError
from openbell.market.timeframes import Timeframe
from openbell.stores.influx.http import InfluxHttp
from openbell.stores.influx.store import InfluxStore, InfluxView
from openbell.stores.overlay import OverlayStore
from openbell.stores.parquet.store import ParquetStore, ParquetView
from openbell.stores.port import BarStore, Span
from tests.stores.contract import BarStoreContract
from tests.stores.model import Reader, assert_same
from tests.stores.native_contract import KINDS, NativeContract
from tests.stores.samples import (
    DAY,
    END,
    EVER,
    FILE,
    LIVE,
    MANY,
    MINUTE,
    NOVEMBER,
    OCTOBER,
    SEPTEMBER,
    START,
    minutes_of,
    run,
    whole,
)

AAPL, BTC = minutes_of("AAPL"), minutes_of("BTC/USD")


class TestOverlayStore(BarStoreContract):
    """Over a home that does not exist."""

    def open_store(self, folder: Path) -> OverlayStore:
        return OverlayStore(ParquetView(folder / "home"), folder=folder / "private")


class TestNativeSeries(NativeContract):
    """Over a home that does not exist: every bar is private."""

    timeframes = KINDS

    def open_store(self, folder: Path) -> OverlayStore:
        return OverlayStore(ParquetView(folder / "home"), folder=folder / "private")


class ViewedStore(ParquetStore):
    """Writes to a home as its owner does and reads it through a view, as a read-only desk does."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._view = ParquetView(folder)
        for part, names in READS.items():
            for name in names:
                setattr(self._part(self, part), name, getattr(self._part(self._view, part), name))

    @staticmethod
    def _part(store: ParquetStore, part: str) -> object:
        return getattr(store, part) if part else store

    def close(self) -> None:
        self._view.close()
        super().close()


READS = {
    "": ("read", "tail", "resampled", "count", "gaps", "stored", "newest", "timeframes"),
    "versions": ("of", "changed_since", "of_store", "changed", "new_bars"),
    "audit": ("premature", "problems"),
    "sources": ("of", "conflicts"),
    "leases": ("holder",),
}


class TestNativeSeriesOfTheHome(NativeContract):
    """Bars that the owner of a home writes, read through the view of a read-only desk."""

    timeframes = KINDS

    def open_store(self, folder: Path) -> ParquetStore:
        return ViewedStore(folder)


class Home:
    """A home's store, as its owner opens it and as a read-only desk opens it."""

    def __init__(self, folder: Path, url: str = "") -> None:
        self.folder = folder
        self._url = url

    def open(self) -> ParquetStore | InfluxStore:
        return InfluxStore(self._http(), self.folder) if self._url else ParquetStore(self.folder)

    def over(self) -> OverlayStore:
        return OverlayStore(InfluxView(self._http(), self.folder) if self._url else ParquetView(self.folder))

    def _http(self) -> InfluxHttp:
        return InfluxHttp(self._url, "o" + hashlib.sha1(str(self.folder).encode()).hexdigest()[:16])

    def fingerprint(self) -> dict[str, tuple[str, int]]:
        """Every file and folder, with its content and its modification time."""
        return {
            str(path): (
                hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
                path.stat().st_mtime_ns,
            )
            for path in (self.folder, *self.folder.rglob("*"))
            if path.exists()
        }


@pytest.fixture(params=["parquet", "influxdb"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    url = request.getfixturevalue("influx").url if request.param == "influxdb" else ""
    return Home(tmp_path / "home", url)


def test_a_missing_home_is_not_created_and_no_temporary_file_remains(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with closing(home.over()) as store:
        assert len(store.read(AAPL, 0, EVER)) == 0
        assert store.stored() == []
        store.write([run("AAPL", SEPTEMBER, MANY)], LIVE, covers=Span(SEPTEMBER, OCTOBER))
        store.compact(EVER)
        assert len(store.read(AAPL, 0, EVER)) == MANY
        assert store.leases.holder("collector") is None
        assert list(temporary.iterdir())
    assert not home.folder.exists()
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("count", [5, MANY])
def test_bars_of_home_and_feed_are_merged_and_the_home_is_unchanged(home: Home, count: int) -> None:
    stored, new = run("AAPL", SEPTEMBER, count), run("AAPL", SEPTEMBER + DAY * 10, 40)
    with closing(home.open()) as owner:
        owner.write([stored], LIVE, covers=Span(SEPTEMBER, SEPTEMBER + DAY * 10))
    before = home.fingerprint()
    with closing(home.over()) as store:
        assert_same(store.read(AAPL, 0, EVER), stored)
        assert store.count(AAPL, Timeframe.M5, EVER) == len(resample(stored, Timeframe.M5, EVER))
        assert store.gaps(AAPL, Span(SEPTEMBER, NOVEMBER)) == [Span(SEPTEMBER + DAY * 10, NOVEMBER)]
        reader = Reader(AAPL)
        assert_same(reader.refresh(store), stored)
        store.write([new], LIVE, covers=Span(SEPTEMBER + DAY * 10, OCTOBER))
        whole = merge(stored, new)
        assert_same(reader.refresh(store), whole)
        assert_same(store.tail(AAPL, 43, EVER), whole.tail(43))
        for timeframe in (Timeframe.M5, Timeframe.H1, Timeframe.D1):
            larger = resample(whole, timeframe, EVER)
            assert store.resampled(AAPL, timeframe, 10_000, EVER).same_as(larger)
            assert store.count(AAPL, timeframe, EVER) == len(larger)
        assert store.gaps(AAPL, Span(SEPTEMBER, NOVEMBER)) == [Span(OCTOBER, NOVEMBER)]
        assert store.stored() == [AAPL]
        with pytest.raises(SourceConflict):
            store.write([run("AAPL", int(stored.time[0]), 1)], FILE)
    assert home.fingerprint() == before


@pytest.mark.parametrize("count", [3, MANY])
def test_later_writes_of_another_process_are_seen(home: Home, count: int) -> None:
    with closing(home.over()) as store:
        reader = Reader(BTC)
        assert len(reader.refresh(store)) == 0
        store.write([run("BTC/USD", SEPTEMBER, 20, 1)], LIVE)
        assert len(reader.refresh(store)) == 20
        with closing(home.open()) as owner:
            for version in range(2, 5):
                offered = run("BTC/USD", SEPTEMBER + version * MINUTE, count, version)
                owner.write([offered], LIVE, covers=Span(SEPTEMBER, SEPTEMBER + count * MINUTE))
                owned = owner.read(BTC, 0, EVER)
                seen = reader.refresh(store)
                assert_same(seen, store.read(BTC, 0, EVER))
                covered = Span(SEPTEMBER, SEPTEMBER + count * MINUTE)
                assert_same(
                    seen.between(covered.start, covered.end),
                    owned.between(covered.start, covered.end),
                    "the home's count",
                )
                owner.compact(EVER)
                assert_same(reader.refresh(store), seen, "moving them changes nothing")
            lease = owner.leases.acquire("collector", "somebody", 60)
            assert store.leases.holder("collector") == "somebody"
            with pytest.raises(LeaseHeld, match="somebody"):
                store.leases.acquire("collector", "me", 60)
            owner.leases.release(lease)
            assert store.leases.acquire("collector", "me", 60).holder == "me"
            assert owner.leases.holder("collector") is None


def test_bars_of_the_feed_win_where_the_home_has_gaps(home: Home) -> None:
    old, new = run("BTC/USD", SEPTEMBER, 10, 1), run("BTC/USD", SEPTEMBER, 10, 2)
    with closing(home.open()) as owner:
        owner.write([old], LIVE, covers=Span(SEPTEMBER, SEPTEMBER + 5 * MINUTE))
        with closing(home.over()) as store:
            store.write([new], LIVE)
            assert_same(store.read(BTC, 0, EVER), merge(old.take(slice(0, 5)), new.take(slice(5, 10))))
            owner.write([empty_of(BTC)], LIVE, covers=Span(SEPTEMBER, SEPTEMBER + 10 * MINUTE))
            assert_same(store.read(BTC, 0, EVER), old)
            assert_same(store.tail(BTC, 7, EVER), old.tail(7))


def test_native_bars_of_home_and_feed_are_merged_and_the_home_is_unchanged(home: Home) -> None:
    days = whole("BTC/USD", Timeframe.D1)
    middle = int(days.time[20])
    with closing(home.open()) as owner:
        owner.write([days.between(0, middle)], FILE, covers=Span(START, middle))
    before = home.fingerprint()
    with closing(home.over()) as store:
        reader = Reader(days.series)
        assert_same(reader.refresh(store), days.between(0, middle))
        assert store.newest(Timeframe.D1, EVER)[days.instrument].time[0] == middle - DAY
        with pytest.raises(SourceConflict, match="imported"):
            store.write([days.tail(40)], LIVE, covers=Span(middle, END))
        store.write([days.between(middle, EVER)], LIVE, covers=Span(middle, END))
        assert_same(reader.refresh(store), days)
        assert_same(store.tail(days.series, 25, EVER), days.tail(25))
        assert_same(store.newest(Timeframe.D1, EVER)[days.instrument], days.tail(1))
        weeks = resample(days, Timeframe.W1, EVER)
        assert_same(store.resampled(days.series, Timeframe.W1, 100, EVER), weeks)
        assert store.count(days.series, Timeframe.W1, EVER) == len(weeks)
        assert store.gaps(days.series, Span(START, END)) == []
        assert store.timeframes(days.instrument) == [Timeframe.D1]
        assert store.stored() == [days.series]
    assert home.fingerprint() == before


def test_a_damaged_native_file_is_left_where_it_is_and_its_bars_are_a_gap(tmp_path: Path) -> None:
    home, days = Home(tmp_path / "home"), whole("AAPL", Timeframe.D1)
    with closing(home.open()) as owner:
        owner.write([days], LIVE, covers=Span(START, END))
    (path,) = home.folder.rglob("AAPL*.parquet")
    path.write_bytes(path.read_bytes()[:-100])
    before = home.fingerprint()
    with closing(home.over()) as store:
        assert_same(store.read(days.series, 0, EVER), empty_of(days.series))
        assert store.gaps(days.series, Span(START, END)) == [Span(START, END)]
        assert [problem.path for problem in store.audit.problems()] == [str(path)]
        store.write([days], LIVE, covers=Span(START, END))
        assert_same(store.read(days.series, 0, EVER), days)
        assert_same(store.newest(Timeframe.D1, EVER)[days.instrument], days.tail(1))
    assert home.fingerprint() == before


def test_a_damaged_file_is_left_where_it_is_and_its_month_is_a_gap(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    with closing(home.open()) as owner:
        for month in (SEPTEMBER, OCTOBER):
            owner.write([run("AAPL", month, MANY)], LIVE, covers=Span(month, month + 20 * DAY))
    path = home.folder / "stocks/1min/AAPL_2025-09.parquet"
    path.write_bytes(path.read_bytes()[:-100])
    before = home.fingerprint()
    with closing(home.over()) as store:
        assert_same(store.read(AAPL, 0, EVER), run("AAPL", OCTOBER, MANY))
        assert Span(SEPTEMBER, OCTOBER) in store.gaps(AAPL, Span(SEPTEMBER, OCTOBER + DAY))
        assert [problem.path for problem in store.audit.problems()] == [str(path)]
        store.write([run("AAPL", SEPTEMBER, MANY)], LIVE, covers=Span(SEPTEMBER, OCTOBER))
        assert_same(store.read(AAPL, 0, OCTOBER), run("AAPL", SEPTEMBER, MANY))
        assert store.count(AAPL, Timeframe.M1, EVER) == 2 * MANY
    assert home.fingerprint() == before


def test_a_view_refuses_to_write(home: Home) -> None:
    with closing(home.open()) as owner:
        owner.write([run("AAPL", SEPTEMBER, 3)], LIVE)
        ahead = int(time.time()) + DAY
        owner.write([empty_of(AAPL)], LIVE, covers=Span(SEPTEMBER, ahead))
    before = home.fingerprint()
    with closing(home.over()) as overlay:
        view: BarStore = overlay._home
        for count in (3, MANY):
            with pytest.raises(StoreError, match="read-only"):
                view.write([run("AAPL", OCTOBER, count)], LIVE)
        assert len(overlay.audit.premature()) == 1
        with pytest.raises(StoreError, match="read-only"):
            view.audit.mend()
        assert overlay.audit.mend() == []
    assert home.fingerprint() == before


WRITER = """
import sys
from pathlib import Path
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.port import Span
from tests.stores.samples import LIVE, MINUTE, SEPTEMBER, run
store = ParquetStore(Path(sys.argv[1]))
print("ready", flush=True)
for minute in range(int(sys.argv[2])):
    at = SEPTEMBER + minute * MINUTE
    store.write([run("AAPL", at, 1), run("BTC/USD", at, 1)], LIVE, covers=Span(at, at + MINUTE))
    if minute % 50 == 49:
        store.compact(at - 20 * MINUTE)
        store._buffer.query("PRAGMA wal_checkpoint(TRUNCATE)")
"""


def test_reading_beside_a_busy_writer_never_sees_half_a_change(tmp_path: Path) -> None:
    """Each minute is written for both symbols in one transaction, and compacted in between."""
    count = 600
    folder = tmp_path / "home"
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), str(count)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert writer.stdout
        assert writer.stdout.readline() == "ready\n"
        with closing(Home(folder).over()) as store:
            seen = 0
            while seen < count:
                assert writer.poll() in {None, 0}
                aapl = store.read(AAPL, 0, EVER)
                assert_same(aapl, run("AAPL", SEPTEMBER, len(aapl)))
                assert len(aapl) >= seen
                seen = len(aapl)
                assert len(store.read(BTC, 0, EVER)) >= seen
                assert writer.poll() is None or len(store.read(AAPL, 0, EVER)) == count
        assert writer.wait(timeout=60) == 0
    finally:
        writer.kill()
        writer.communicate()
