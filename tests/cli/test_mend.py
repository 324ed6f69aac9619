"""`openbell doctor` finds coverage that is later than the time at which it was written; `--mend` takes it out."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from openbell.desk.desk import Desk
from openbell.desk.settings import load
from openbell.market.instruments import parse
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.stores.port import BarStore, Span
from tests.client import run
from tests.stores.samples import DAY, EVER, LIVE, MINUTE, SEPTEMBER
from tests.stores.samples import run as minutes

BTC = Series(parse("BTC/USD"))


@pytest.fixture(params=["parquet", "influxdb"])
def settings(request: pytest.FixtureRequest) -> dict[str, str]:
    if request.param == "parquet":
        return {"FEED": "none"}
    url = request.getfixturevalue("influx").url
    return {"FEED": "none", "INFLUX_URL": url, "INFLUX_DATABASE": "mend"}


def store_of(home: Path, settings: dict[str, str]) -> BarStore:
    given = {f"OPENBELL_{name}": value for name, value in {"HOME": str(home), **settings}.items()}
    return Desk(load(given)).store


def test_doctor_finds_and_mends_what_was_covered_too_early(tmp_path: Path, settings: dict[str, str]) -> None:
    now = int(time.time() // 60 * 60)
    with closing(store_of(tmp_path, settings)) as store:
        store.write([minutes("BTC/USD", now - DAY, 2 * 1440)], LIVE, covers=Span(now - DAY, now + DAY))
        store.write([minutes("AAPL", SEPTEMBER, 10)], LIVE, covers=Span(SEPTEMBER, SEPTEMBER + DAY))

    found = run(tmp_path, "doctor", **settings)
    refused = run(tmp_path, "doctor", "--mend", READ_ONLY="1", **settings)
    mended = run(tmp_path, "doctor", "--mend", **settings)
    after = run(tmp_path, "doctor", **settings)

    assert found.returncode == 1
    assert "bad   BTC/USD from " in found.stdout
    assert "before it had ended\n      → openbell doctor --mend\n" in found.stdout
    assert "bad   AAPL" not in found.stdout
    assert refused.returncode == 1
    assert "READ_ONLY" in refused.stderr
    assert "ok    mended: BTC/USD from " in mended.stdout
    assert "before it had ended" not in after.stdout
    assert after.returncode == 0, after.stdout
    with closing(store_of(tmp_path, settings)) as store:
        assert store.read(BTC, 0, EVER).time[-1] < time.time() - MINUTE
        assert now <= store.gaps(BTC, Span(now - DAY, now + DAY))[0].start <= time.time()
        assert len(store.read(Series(parse("AAPL")), 0, EVER)) == 10


def test_imported_bars_are_never_mended_away(tmp_path: Path, settings: dict[str, str]) -> None:
    """No feed has them. The coverage was written in what is the future now: the clock was or is wrong."""
    now = int(time.time() // 60 * 60)
    with closing(store_of(tmp_path, {**settings, "FEED": "none"})) as store:
        kept = minutes("ETH/USD", now - DAY, 100)
        store.write([kept], Source(Origin.IMPORTED, "import"), covers=Span(now - DAY, now - DAY + 6000))
        buffer: Any = store
        with buffer._buffer.transaction() as db:
            db.execute("UPDATE coverage SET written = ?", (now + 10 * DAY,))
        assert store.audit.premature() == []
        assert store.audit.mend() == []
        assert store.read(kept.series, 0, EVER).same_as(kept)
