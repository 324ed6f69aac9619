"""Volumes leave with all digits of the feed or the file; only sums are rounded."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.client import run

OWN = "12345678901230.4"
"""Rounded to 13 digits as a sum would be, it loses its last one."""
START = datetime(2025, 1, 6, tzinfo=UTC)


@pytest.mark.parametrize(("name", "step"), [("1m", timedelta(minutes=1)), ("1d", timedelta(days=1))])
def test_the_volume_of_a_file_keeps_its_digits_in_every_server(tmp_path: Path, name: str, step: timedelta) -> None:
    rows = [f"{(START + step * number).isoformat()},100,101,99,100,{OWN}" for number in range(60)]
    (tmp_path / "bars.csv").write_text("time,open,high,low,close,volume\n" + "\n".join(rows) + "\n")
    home, settings = tmp_path / "home", {"FEED": "none", "AS_OF": (START + step * 60).isoformat()}
    imported = run(home, "import", str(tmp_path / "bars.csv"), "--symbol", "BTC/USD", "--timeframe", name, FEED="none")
    assert imported.returncode == 0, imported.stderr

    def called(server: str, tool: str, **given: Any) -> Any:
        done = run(home, "call", server, tool, json.dumps({"symbol": "BTC/USD", **given}), **settings)
        assert done.returncode == 0, done.stdout + done.stderr
        found = json.loads(done.stdout)
        return found.get("data", found)

    candles = called("market-data", "get_candles", timeframe=name)["items"]
    assert {each["volume"] for each in candles} == {float(OWN)}
    series = called("chartgen", "generate_chart", timeframe=name, format="series")
    assert {each["v"] for each in series["bars"]} == {float(OWN)}
    summary = called("chartgen", "generate_chart", timeframe=name, format="summary")
    assert summary["price"]["last"]["volume"] == float(OWN)
    if name == "1m":
        snapshot = called("chart-signals", "get_signals", timeframe="1min")["snapshot"]
        assert (snapshot["volume"], snapshot["prev_snapshot"]["volume"]) == (float(OWN), float(OWN))
        hours = called("market-data", "get_candles", timeframe="1h")["items"]
        assert [each["volume"] for each in hours] == [740740734073800.0], "the sum of 60 minutes, to 13 digits"
