"""`import --replace` in InfluxDB, killed at each of its steps: nothing is mixed, and what is lost is known to be missing."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from openbell.market.bars import resample
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores.influx.http import InfluxHttp
from openbell.stores.influx.store import InfluxStore
from openbell.stores.port import Span
from tests.counts import runs
from tests.stores.child import Child
from tests.stores.influx_replacer import REPLACEMENTS, Replacement
from tests.stores.influx_server import InfluxServer
from tests.stores.model import assert_same
from tests.stores.samples import EVER, LIVE

KILLS = runs(4, soak=100)
"""Steps of each replacement at which it is killed, at most all. Most steps delete bars that were made of minutes."""


def assert_consistent(store: InfluxStore, done: Replacement, where: str) -> None:
    """Every bar is an old or a new one, and a bar that is gone is not covered."""
    series: Series = done.before.series
    found = store.read(series, 0, EVER)
    assert (np.diff(found.time) > 0).all(), where
    rows = {
        (time, close) for bars in (done.before, done.new) for time, close in zip(bars.time, bars.close, strict=True)
    }
    assert rows.issuperset(zip(found.time, found.close, strict=True)), where
    adjustments = {source.adjustment for source in store.sources.of(series, Span(0, EVER))}
    is_new = np.isin(found.close, done.new.close)
    if done.source.adjustment != LIVE.adjustment:
        assert is_new.all() or not is_new.any(), f"{where}: mixed"
        assert len(adjustments) == 1 or not len(found), where
    if not is_new.any():
        assert store.sources.conflicts(done.before, LIVE) == [], f"{where}: the feed could not store its bars again"
    outside = done.after.time[~np.isin(done.after.time, done.new.time)]
    assert np.isin(outside, found.time).all(), f"{where}: bars that are not replaced are lost"
    lost = done.before.time[~np.isin(done.before.time, found.time)]
    gaps = store.gaps(series, done.covered)
    assert all(any(gap.start <= time < gap.end for gap in gaps) for time in lost), f"{where}: lost, but covered"
    larger = Timeframe.H1 if series.timeframe is Timeframe.M1 else Timeframe.W1
    assert_same(store.resampled(series, larger, 9999, EVER), resample(found, larger, EVER), where)


@pytest.mark.parametrize("name", REPLACEMENTS)
def test_a_replacement_that_is_killed_at_any_step_is_done_by_the_next_one(
    influx: InfluxServer, tmp_path: Path, name: str
) -> None:
    done, series = REPLACEMENTS[name], REPLACEMENTS[name].before.series

    def killed_at(step: int) -> tuple[InfluxStore, list[str]]:
        """A store in which the replacement was killed before a step, and the number of steps if it was not."""
        database, folder = f"r{list(REPLACEMENTS).index(name)}x{step}", tmp_path / str(step)
        with closing(InfluxStore(InfluxHttp(influx.url, database), folder)) as store:
            done.prepare(store)
        with Child("tests.stores.influx_replacer", influx.url, database, folder, name, step) as process:
            process.wait()
            printed = process.kill()
        return InfluxStore(InfluxHttp(influx.url, database), folder), printed

    whole, (steps,) = killed_at(1_000_000)
    with closing(whole):
        assert_same(whole.read(series, 0, EVER), done.after)
    assert int(steps) > 3
    for step in sorted(set(np.linspace(0, int(steps) - 1, KILLS).astype(int).tolist())):
        where = f"{name}, step {step} of {steps}"
        store, printed = killed_at(step)
        with closing(store):
            assert printed == [], where
            assert_consistent(store, done, where)
            done.run(store)
            assert_consistent(store, done, where)
            assert_same(store.read(series, 0, EVER), done.after, where)
            assert store.sources.conflicts(done.new, done.source) == [], where
            store.write([done.new], done.source)
            assert_same(store.read(series, 0, EVER), done.after, where)
