"""The volume of 24 hours: longer bars take the place of minutes that are not stored, and what is missing is said."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from openbell.desk.bars.bar_assembly import QuietEdges
from openbell.desk.bars.latest_price import DayVolume, day_volume
from openbell.market.bars import Bars, empty_of
from openbell.market.clock import iso
from openbell.market.instruments import parse
from openbell.market.series import Series
from openbell.market.series_plan import Native
from openbell.market.timeframes import Timeframe
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.port import Span
from tests.client import run
from tests.desk.test_series import BTC, H1, M1, Vendor, desk, vendor_bars
from tests.stores.samples import FILE, at

NOW = at("2025-03-12T21:00:00")
M5 = Timeframe.M5
HALF_A_DAY = Native(reach=43_200)


def ask(folder: Path, now: float, natives: Mapping[Timeframe, Native]) -> tuple[DayVolume, Vendor]:
    async def main() -> tuple[DayVolume, Vendor]:
        with closing(ParquetStore(folder)) as store:
            service, vendor = desk(store, now, natives)
            minutes = await service.newest(BTC, M1, 3000)
            found = await day_volume(service, minutes, now)
            await service.threads.close()
            return found, vendor

    return asyncio.run(main())


def volume(timeframe: Timeframe, start: float, end: float) -> float:
    return float(vendor_bars(Series(BTC, timeframe), int(start), int(end)).volume.sum())


def test_minutes_that_are_all_stored_are_summed_and_nothing_else_is_asked_for(tmp_path: Path) -> None:
    found, vendor = ask(tmp_path, NOW + 130, {M1: Native(), M5: Native(), H1: Native()})
    assert found.volume == pytest.approx(volume(M1, NOW + 180 - 86400, NOW + 120))
    assert (found.missing, found.note) == (0, None)
    assert {series.timeframe for series, *_ in vendor.requests} == {M1}


@pytest.mark.parametrize("minute", [0, 2])
def test_the_shortest_longer_bars_take_the_place_of_missing_minutes(tmp_path: Path, minute: int) -> None:
    now = NOW + 60 * minute
    found, _ = ask(tmp_path, now, {M1: HALF_A_DAY, M5: Native(), H1: Native()})
    split = NOW - 43_200 + (300 if minute else 0)  # a 5-minute bar of which the vendor has three minutes is used whole
    first = NOW - 86400 + (300 if minute else 0)
    assert found.volume == pytest.approx(volume(M5, first, split) + volume(M1, split, now))
    assert found.missing == (3 if minute else 0), "of a bar that begins before the 24 hours, nothing is counted"
    assert (found.note is None) == (minute == 0)


def test_without_longer_bars_the_result_says_how_many_minutes_are_missing(tmp_path: Path) -> None:
    found, _ = ask(tmp_path, NOW, {M1: HALF_A_DAY})
    assert found.volume == pytest.approx(volume(M1, NOW - 43_200, NOW))
    assert found.note == "volume_24h lacks 720 minutes that are not stored"


def test_silence_is_not_missing_and_minutes_of_unknown_coverage_are_left_as_they_are(tmp_path: Path) -> None:
    quiet: Bars = vendor_bars(Series(BTC), NOW - 7200, NOW - 3600)
    with closing(ParquetStore(tmp_path / "quiet")) as store:
        store.write([quiet], FILE, covers=Span(NOW - 90_000, NOW))
    with closing(ParquetStore(tmp_path / "unknown")) as store:
        store.write([quiet, empty_of(quiet.series)], FILE)
    for folder in ("quiet", "unknown"):
        found, _ = ask(tmp_path / folder, NOW, {})
        assert found.volume == pytest.approx(float(quiet.volume.sum()))
        assert found.missing == 0


def test_the_month_beside_a_quiet_edge_is_read_once_for_many_volumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Span] = []
    longest = QuietEdges._longest_pause

    def counted(edges: QuietEdges, series: Series, month: Span) -> int:
        read.append(month)
        return longest(edges, series, month)

    async def main() -> None:
        stock = vendor_bars(Series(parse("AAPL")), NOW - 6 * 3600, NOW - 2 * 3600)
        with closing(ParquetStore(tmp_path)) as store:
            store.write([stock], FILE, covers=Span(NOW - 6 * 3600, NOW - 2 * 3600))
            service, _ = desk(store, NOW, {})
            for _ in range(3):
                await day_volume(service, stock, NOW)
            await service.threads.close()

    monkeypatch.setattr(QuietEdges, "_longest_pause", counted)
    asyncio.run(main())
    assert len(read) == 1


def test_the_truth_header_says_what_the_volume_lacks(tmp_path: Path) -> None:
    rows = [f"{iso(NOW + 60 * minute)},10,10,10,10,2" for minute in range(-300, 0)]
    (tmp_path / "btc.csv").write_text("\n".join(["timestamp,open,high,low,close,volume", *rows, ""]))
    assert run(tmp_path, "import", str(tmp_path / "btc.csv"), "--symbol", "BTC/USD", FEED="none").returncode == 0
    asked = ("call", "market-data", "get_current_price", '{"symbol": "BTC/USD"}', "--meta", "--as-of", iso(NOW))
    answer = json.loads(run(tmp_path, *asked, FEED="none").stdout)
    assert answer["result"]["data"]["volume_24h"] == 600
    assert answer["_meta"]["openbell/truth"]["note"] == (
        "volume_24h lacks 1,140 minutes that are not stored; open, high and low of the day are null: some of its minutes "
        "are not stored"
    )
    assert answer["result"]["data"]["day"] == {"open": None, "high": None, "low": None}
