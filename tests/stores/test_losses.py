"""Bars that are lost behind the back of a store: files and a real InfluxDB."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from hashlib import sha1
from pathlib import Path

import numpy as np
import pytest

from openbell.market.bars import Bars
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores.influx.bars import InfluxBars
from openbell.stores.influx.http import InfluxHttp
from openbell.stores.influx.store import InfluxStore, InfluxView
from openbell.stores.parquet.store import ParquetStore, ParquetView
from openbell.stores.port import BarStore, Counted, Span
from openbell.stores.stored_counts import recorded
from tests.stores.influx_server import shared as server
from tests.stores.loss_contract import BTC, LossContract, all_losses, mend_all
from tests.stores.model import assert_same
from tests.stores.samples import DAY, EVER, FILE, LIVE, SEPTEMBER, run
from tests.stores.samples import bars as make_bars


class TestFiles(LossContract):
    def open_store(self, folder: Path) -> BarStore:
        return ParquetStore(folder)

    def copy(self, folder: Path) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in folder.glob("*/*/*.parquet")}

    def restore(self, folder: Path, copied: dict[Path, bytes]) -> None:
        self.drop(folder)
        for path, content in copied.items():
            path.write_bytes(content)

    def drop(self, folder: Path) -> None:
        for path in folder.glob("*/*/*.parquet"):
            path.unlink()

    def test_a_copied_home_is_read_once_and_lacks_nothing(self, folder: Path) -> None:
        """A copy gives every file another time."""
        with closing(self.open_store(folder)) as store:
            store.write([run("BTC/USD", SEPTEMBER, 3000)], LIVE, covers=Span(SEPTEMBER, SEPTEMBER + DAY))
        for path in folder.glob("*/*/*.parquet"):
            os.utime(path, (1e9, 1e9))
        with closing(ParquetStore(folder)) as store:
            assert all_losses(store) == mend_all(store) == []
            assert store._archive.tallies(BTC, stored(folder)) == {}

    def test_a_file_that_was_replaced_while_the_store_is_open_is_a_gap_for_the_next_process(self, folder: Path) -> None:
        with closing(self.open_store(folder)) as store:
            store.write([run("BTC/USD", SEPTEMBER, 3000)], LIVE, covers=Span(SEPTEMBER, SEPTEMBER + 2 * DAY))
            copied = self.copy(folder)
            store.write([run("BTC/USD", SEPTEMBER, 4320)], LIVE, covers=Span(SEPTEMBER, SEPTEMBER + 3 * DAY))
            self.restore(folder, copied)
        asked = Span(SEPTEMBER, SEPTEMBER + 3 * DAY)
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        with closing(ParquetView(folder)) as view:
            assert view.gaps(BTC, asked) == [Span(SEPTEMBER + 2 * DAY, SEPTEMBER + 3 * DAY)]
        assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
        with closing(self.open_store(folder)) as store:  # the first question checks the series
            assert store.gaps(BTC, asked) == [Span(SEPTEMBER + 2 * DAY, SEPTEMBER + 3 * DAY)]


def stored(folder: Path) -> dict[str, Counted]:
    with closing(ParquetStore(folder)) as store:
        return recorded(store._buffer, BTC)


class TestInfluxDB(LossContract):
    def open_store(self, folder: Path) -> BarStore:
        return InfluxStore(InfluxHttp(server().url, self.name(folder)), folder)

    @staticmethod
    def name(folder: Path) -> str:
        return "t" + sha1(str(folder).encode()).hexdigest()[:16]

    def copy(self, folder: Path) -> str:
        copied = f"{self.name(folder)}_copy"
        server().query(f'CREATE DATABASE "{copied}"')
        self._into(self.name(folder), copied)
        return copied

    def restore(self, folder: Path, copied: str) -> None:
        self.drop(folder)
        server().query(f'CREATE DATABASE "{self.name(folder)}"')
        self._into(copied, self.name(folder))

    def drop(self, folder: Path) -> None:
        server().query(f'DROP DATABASE "{self.name(folder)}"')

    def _into(self, source: str, target: str) -> None:
        server().query(f'SELECT * INTO "{target}".autogen.:MEASUREMENT FROM "{source}".autogen./.*/ GROUP BY *')

    def test_bars_that_are_made_of_minutes_are_made_again_after_they_were_dropped(self, folder: Path) -> None:
        asked = (Timeframe.H2, 30, SEPTEMBER + 3 * DAY)
        with closing(self.open_store(folder)) as store:
            store.write([run("BTC/USD", SEPTEMBER, 3 * 1440)], LIVE, covers=Span(SEPTEMBER, SEPTEMBER + 3 * DAY))
            expected = store.resampled(BTC, *asked)
            assert not store.audit.lacks_made()
        server().query('DROP MEASUREMENT "candles_h2"', self.name(folder))
        with closing(self.open_store(folder)) as store:
            assert store.audit.lacks_made()
            assert store.audit.mend_made()
            assert not store.audit.lacks_made()
            assert_same(store.resampled(BTC, *asked), expected)
            assert all_losses(store) == []

    @pytest.mark.parametrize("timeframe", [Timeframe.M1, Timeframe.H1])
    @pytest.mark.parametrize("killed", [False, True])
    def test_bars_that_are_being_written_are_not_lost(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, timeframe: Timeframe, killed: bool
    ) -> None:
        write, found = InfluxBars.write_of_sources, []
        asked = Span(SEPTEMBER, SEPTEMBER + 3 * DAY)
        times = np.arange(asked.start, asked.end, timeframe.seconds)
        part = make_bars(Series(BTC.instrument, timeframe), times)

        def checked(bars: InfluxBars, parts: Iterable[tuple[Bars, str]]) -> None:
            with closing(self.open_store(folder)) as other:  # another process checks its series meanwhile
                found.append(all_losses(other) + mend_all(other))
            if killed and len(found) == 3:
                raise KeyboardInterrupt
            write(bars, parts)

        monkeypatch.setattr(InfluxBars, "write_of_sources", checked)
        with closing(self.open_store(folder)) as store:
            for source, replace in ((LIVE, False), (FILE, True), (LIVE, True)):
                with suppress(KeyboardInterrupt):
                    store.write([part], source, covers=asked, replace=replace)
        monkeypatch.undo()
        with closing(self.open_store(folder)) as store:
            assert found == [[], [], []]
            assert all_losses(store) == mend_all(store) == []

    def test_a_reader_that_may_not_write_finds_what_is_lost(self, folder: Path) -> None:
        asked = Span(SEPTEMBER, SEPTEMBER + 3 * DAY)
        with closing(self.open_store(folder)) as store:
            store.write([run("BTC/USD", SEPTEMBER, 3 * 1440)], LIVE, covers=asked)
        since = f"time >= {SEPTEMBER + 2 * DAY}s"
        server().query(f"DELETE FROM candles WHERE currency_pair = 'BTC/USD' AND {since}", self.name(folder))
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        with closing(InfluxView(InfluxHttp(server().url, self.name(folder)), folder)) as view:
            lost = [Span(SEPTEMBER + 2 * DAY, SEPTEMBER + 3 * DAY)]
            assert view.audit.lost_spans(BTC, asked) == view.gaps(BTC, asked) == lost
        assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before

    def test_bars_whose_numbers_are_lost_are_counted_once(self, folder: Path) -> None:
        with closing(self.open_store(folder)) as store:
            store.write([run("BTC/USD", SEPTEMBER, 3000)], LIVE, covers=Span(SEPTEMBER, SEPTEMBER + DAY))
            store.write([run("ETH/USD", SEPTEMBER, 3000)], LIVE, covers=Span(SEPTEMBER, SEPTEMBER + DAY))
        with closing(sqlite3.connect(folder / "buffer.sqlite")) as db:
            db.execute("DELETE FROM stored")
            db.commit()
        server().query("DELETE FROM candles WHERE currency_pair = 'ETH/USD'", self.name(folder))
        with closing(self.open_store(folder)) as store:
            assert [loss.series.name for loss in mend_all(store)] == ["ETH/USD"]  # none is left: that is known at least
            assert mend_all(store) == []
            assert len(store.read(BTC, 0, EVER)) == 3000

    def test_a_copied_home_on_another_disk_is_the_same(self, folder: Path, tmp_path: Path) -> None:
        with closing(self.open_store(folder)) as store:
            store.write([run("BTC/USD", SEPTEMBER, 3000)], LIVE, covers=Span(SEPTEMBER, SEPTEMBER + DAY))
        shutil.copytree(folder, tmp_path / "other")
        http = InfluxHttp(server().url, self.name(folder))
        with closing(InfluxStore(http, tmp_path / "other")) as store:
            assert all_losses(store) == []
