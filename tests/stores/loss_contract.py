"""What every bar store must do about bars that were lost behind its back. A test module supplies the ways to lose them."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openbell.market.bars import merge
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores.port import BarStore, Loss, Span
from openbell.stores.stored_counts import lost_spans
from tests.stores.model import assert_same
from tests.stores.samples import (
    DAY,
    EVER,
    FILE,
    LIVE,
    MINUTE,
    NOVEMBER,
    OCTOBER,
    SEPTEMBER,
    bars,
    minutes_of,
    run,
    sparse,
)
from tests.stores.store_suite import StoreSuite

BTC, ETH = minutes_of("BTC/USD"), minutes_of("ETH/USD")
HOURS = Series(BTC.instrument, Timeframe.H1)
MONTHS = Span(SEPTEMBER, NOVEMBER)


def all_losses(store: BarStore) -> list[Loss]:
    return [loss for series in store.audit.to_check() for loss in store.audit.losses(series)]


def mend_all(store: BarStore) -> list[Loss]:
    return [loss for series in store.audit.to_check() for loss in store.audit.mend_losses(series)]


class LossContract(StoreSuite):
    """Each test loses bars that were stored, as an operator may, and opens the store again."""

    @abstractmethod
    def copy(self, folder: Path) -> Any:
        """Copies what long-term storage holds, but not the home's own tables."""

    @abstractmethod
    def restore(self, folder: Path, copied: Any) -> None:
        """Puts such a copy back in place of what is there."""

    @abstractmethod
    def drop(self, folder: Path) -> None:
        """Removes all of long-term storage."""

    def test_bars_of_a_quiet_symbol_are_all_there(self, folder: Path) -> None:
        with closing(self.open_store(folder)) as store:
            store.write([sparse("BTC/USD", SEPTEMBER, OCTOBER + 9 * DAY)], LIVE, covers=MONTHS)
            store.write([run("ETH/USD", OCTOBER, 300)], LIVE, covers=Span(OCTOBER, OCTOBER + DAY))
            store.compact(OCTOBER + 100 * MINUTE)
            assert all_losses(store) == mend_all(store) == []
        with closing(self.open_store(folder)) as store:
            assert all_losses(store) == []

    @pytest.mark.parametrize("source", [LIVE, FILE])
    def test_what_is_dropped_becomes_a_gap(self, folder: Path, source: Any) -> None:
        with closing(self.open_store(folder)) as store:
            store.write([run("BTC/USD", SEPTEMBER, 3 * 1440)], source, covers=Span(SEPTEMBER, SEPTEMBER + 3 * DAY))
            hours = bars(HOURS, SEPTEMBER + 3600 * np.arange(48))
            store.write([hours], source, covers=Span(SEPTEMBER, SEPTEMBER + 2 * DAY))
        self.drop(folder)
        with closing(self.open_store(folder)) as store:
            found = all_losses(store)
            assert {(loss.series, loss.found) for loss in found} == {(BTC, 0), (HOURS, 0)}
            assert all_losses(store) == found
            version = store.versions.of(BTC)
            assert len(mend_all(store)) == 2
            assert store.versions.changed_since(BTC, version) is not None
            assert store.gaps(BTC, Span(SEPTEMBER, SEPTEMBER + DAY)) == [Span(SEPTEMBER, SEPTEMBER + DAY)]
            assert store.gaps(HOURS, Span(SEPTEMBER, SEPTEMBER + DAY)) == [Span(SEPTEMBER, SEPTEMBER + DAY)]
            assert all_losses(store) == []
            assert len(store.audit.problems()) == 2
            assert {loss.series for loss in store.audit.lost_for_good()} == ({BTC, HOURS} if source is FILE else set())
            again = run("BTC/USD", SEPTEMBER, 3 * 1440, 2)
            store.write([again], source, covers=Span(SEPTEMBER, SEPTEMBER + 3 * DAY))
            assert_same(store.read(BTC, 0, EVER), again)
            assert BTC not in {loss.series for loss in store.audit.lost_for_good()}

    def test_an_older_copy_lacks_only_its_last_days(self, folder: Path) -> None:
        """Days that are still there stay covered: a vendor may not have them any more."""
        with closing(self.open_store(folder)) as store:
            store.write([run("BTC/USD", SEPTEMBER, 3000)], LIVE, covers=Span(SEPTEMBER, SEPTEMBER + 3000 * MINUTE))
            store.compact(EVER)
        copied = self.copy(folder)
        with closing(self.open_store(folder)) as store:
            later = run("BTC/USD", SEPTEMBER + 3000 * MINUTE, 6 * 1440 - 3000)
            store.write([later], LIVE, covers=Span(SEPTEMBER + 3000 * MINUTE, SEPTEMBER + 6 * DAY))
        self.restore(folder, copied)
        with closing(self.open_store(folder)) as store:
            assert [loss.found for loss in mend_all(store)] == [3000]
            gaps = store.gaps(BTC, Span(SEPTEMBER, SEPTEMBER + 6 * DAY))
            assert gaps == store.audit.lost_spans(BTC, MONTHS) == [Span(SEPTEMBER + 2 * DAY, SEPTEMBER + 6 * DAY)]
            store.write([run("BTC/USD", SEPTEMBER + 2 * DAY, 4 * 1440)], LIVE, covers=gaps[0])
            assert_same(store.read(BTC, 0, EVER), merge(run("BTC/USD", SEPTEMBER, 3000), later))
            assert store.audit.lost_spans(BTC, MONTHS) == []
            assert all_losses(store) == []

    def test_a_larger_bar_is_never_made_of_part_of_its_minutes(self, folder: Path) -> None:
        """Days that were made before the loss, and days that were made of what was left, are both made again."""
        whole = run("BTC/USD", SEPTEMBER, 10 * 1440)
        with closing(self.open_store(folder)) as store:
            store.write([whole.take(slice(0, 3000))], LIVE, covers=Span(SEPTEMBER, SEPTEMBER + 3000 * MINUTE))
        copied = self.copy(folder)
        with closing(self.open_store(folder)) as store:
            store.write([whole], LIVE, covers=Span(SEPTEMBER, SEPTEMBER + 10 * DAY))
            asked = (Timeframe.H1, 500, SEPTEMBER + 10 * DAY)
            days = (Timeframe.D1, 20, SEPTEMBER + 10 * DAY)
            expected, expected_days = store.resampled(BTC, *asked), store.resampled(BTC, *days)
        self.restore(folder, copied)
        with closing(self.open_store(folder)) as store:
            store.resampled(BTC, *days)  # made of what is left
            store.audit.mend_made()
            mend_all(store)
            for gap in store.gaps(BTC, Span(SEPTEMBER, SEPTEMBER + 10 * DAY)):
                store.write([whole.between(gap.start, gap.end)], LIVE, covers=gap)
            assert_same(store.resampled(BTC, *asked), expected)
            assert_same(store.resampled(BTC, *days), expected_days)
            assert store.count(BTC, Timeframe.H1, SEPTEMBER + 10 * DAY) == 240

    def test_a_day_that_was_lost_before_its_minutes_left_the_buffer_is_found(self, folder: Path) -> None:
        """The database is dropped at noon; the minutes of the afternoon are as many as those that were lost."""
        with closing(self.open_store(folder)) as store:
            store.write([run("BTC/USD", OCTOBER - 2 * DAY, 2 * 1440 + 720)], LIVE, covers=MONTHS)
        self.drop(folder)
        with closing(self.open_store(folder)) as store:
            store.write([run("BTC/USD", OCTOBER + 720 * MINUTE, 720)], LIVE, covers=MONTHS)
            store.compact(EVER)
        with closing(self.open_store(folder)) as store:
            mend_all(store)
            assert Span(OCTOBER, OCTOBER + DAY) in store.gaps(BTC, Span(OCTOBER, OCTOBER + DAY))

    def test_bars_of_another_source_stay_covered(self, folder: Path) -> None:
        with closing(self.open_store(folder)) as store:
            store.write([run("BTC/USD", SEPTEMBER, 2 * 1440)], FILE, covers=Span(SEPTEMBER, SEPTEMBER + 2 * DAY))
        copied = self.copy(folder)
        with closing(self.open_store(folder)) as store:
            live = run("BTC/USD", SEPTEMBER + 2 * DAY, 2 * 1440)
            store.write([live], LIVE, covers=Span(SEPTEMBER + 2 * DAY, SEPTEMBER + 4 * DAY))
        self.restore(folder, copied)
        with closing(self.open_store(folder)) as store:
            mend_all(store)
            gaps = store.gaps(BTC, Span(SEPTEMBER, SEPTEMBER + 4 * DAY))
            assert gaps == [Span(SEPTEMBER + 2 * DAY, SEPTEMBER + 4 * DAY)]
            assert store.audit.lost_for_good() == []

    def test_a_replacement_is_no_loss(self, folder: Path) -> None:
        with closing(self.open_store(folder)) as store:
            store.write([run("BTC/USD", SEPTEMBER, 3 * 1440)], LIVE, covers=Span(SEPTEMBER, SEPTEMBER + 3 * DAY))
            store.write([run("BTC/USD", SEPTEMBER + DAY, 700, 2)], FILE, replace=True)
            assert all_losses(store) == mend_all(store) == []
        with closing(self.open_store(folder)) as store:
            assert all_losses(store) == []

    @settings(suppress_health_check=[HealthCheck.differing_executors], deadline=None, max_examples=6)
    @given(
        st.lists(
            st.tuples(st.integers(0, 6000), st.sampled_from([1, 40, 900, 2300]), st.booleans()), min_size=1, max_size=5
        )
    )
    def test_no_order_of_writes_looks_like_a_loss(self, writes: list[tuple[int, int, bool]]) -> None:
        from tempfile import TemporaryDirectory

        with TemporaryDirectory() as folder, closing(self.open_store(Path(folder))) as store:
            for number, (minute, count, compacts) in enumerate(writes):
                start = OCTOBER + (minute - 3000) * MINUTE
                store.write([run("BTC/USD", start, count, number)], LIVE, covers=Span(start, start + count * MINUTE))
                if compacts:
                    store.compact(start + count * MINUTE // 2)
                assert all_losses(store) == mend_all(store) == []


def test_lost_days_are_joined_and_end_with_their_month() -> None:
    day = OCTOBER // DAY
    expected = {day - 1: 5, day - 2: 5, day - 4: 5, day - 5: 0}
    spans = lost_spans(Timeframe.M1, "2025-09", expected, {day - 1: 4})
    assert spans == [Span(OCTOBER - 4 * DAY, OCTOBER - 3 * DAY), Span(OCTOBER - 2 * DAY, OCTOBER)]
