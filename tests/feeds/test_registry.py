"""A package with a feed or broker on Python's path can be selected, is documented, and its settings are read."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from openbell.brokers.registry import all_brokers
from openbell.feeds.registry import all_feeds
from tests.client import OPENBELL, PATIENCE, environment

FEED = '''
"""A market in which every price is the same."""

from openbell.feeds.registry import FeedKind, Option
from openbell.market.provenance import Origin


def make(parts):
    import numpy as np

    from openbell.feeds.none.feed import NoFeed
    from openbell.market.bars import make as bars
    from openbell.market.series_plan import Native
    from openbell.market.provenance import Source
    from openbell.market.timeframes import Timeframe

    class Flat(NoFeed):
        name = "flat"
        origin = Origin.LIVE
        source = Source(Origin.LIVE, "flat")

        def supports(self, instrument):
            return instrument.symbol == parts.argument.upper().replace("_", "/")

        async def natives(self, instrument):
            return {Timeframe.M1: Native(reach=30 * 86400)}

        async def history(self, series, start, end):
            times = np.arange(start, end, 60)
            price = np.full(len(times), float(parts.settings["flat_price"]))
            return bars(series.instrument, Timeframe.M1, times, price, price, price, price, price)

    return Flat()


FEED = FeedKind(
    "flat",
    Origin.LIVE,
    "always the same price",
    "a flat market of {argument}",
    make,
    argument="SYMBOL",
    options=(Option("flat_price", "7", "the price of everything", ("7", "8")),),
)
'''
BROKER = '''
"""A broker that takes nothing."""

from openbell.brokers.registry import BrokerKind, BrokerParts
from openbell.feeds.registry import Option
from openbell.market.errors import SettingsError


def make(parts):
    raise SettingsError(f"closed: {parts.settings['closed_reason']}")


BROKER = BrokerKind("closed", "takes no orders", make, options=(Option("closed_reason", "holiday", "why"),))
'''


def run(folder: Path, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in a new process with `folder` on Python's path."""
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    given = {**environment(folder / "home", **settings), "PYTHONPATH": os.pathsep.join(paths)}
    command = [*OPENBELL, *words]
    return subprocess.run(command, env=given, capture_output=True, text=True, timeout=PATIENCE, check=False)


def test_a_feed_and_a_broker_from_another_folder_can_be_used(tmp_path: Path) -> None:
    for room, text in (("feeds/flat", FEED), ("brokers/closed", BROKER)):
        package = tmp_path / "openbell" / room
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(text)

    asked = json.dumps({"symbol": "BTC/USD"})
    done = run(
        tmp_path, "call", "market-data", "get_current_price", asked, "--meta", FEED="flat:btc_usd", FLAT_PRICE="8"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads(done.stdout)
    assert answer["result"]["data"]["price"] == 8.0
    assert answer["result"]["data"]["data_source"] == "a flat market of btc_usd"
    assert answer["_meta"]["openbell/truth"]["data"] == "live"
    assert answer["_meta"]["openbell/truth"]["feed"] == "flat:btc_usd"

    refused = run(tmp_path, "doctor", FEED="flat")
    assert refused.returncode != 0
    assert "flat:SYMBOL" in refused.stderr
    refused = run(tmp_path, "doctor", FEED="flat:btc_usd", FLAT_PRICE="9")
    assert "OPENBELL_FLAT_PRICE is '9': use 7, 8" in refused.stderr

    closed = run(tmp_path, "mcp", "chartgen", "--trade", FEED="flat:btc_usd", BROKER="closed", CLOSED_REASON="snow")
    assert closed.returncode != 0
    assert "closed: snow" in closed.stderr

    shown = "from tools.reference import pages; print(pages()['settings.md'])"
    command = [OPENBELL[0], "-c", shown]
    given = {
        **environment(tmp_path / "home"),
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    page = subprocess.run(
        command, cwd=Path(__file__).parents[2], env=given, capture_output=True, text=True, timeout=PATIENCE, check=True
    ).stdout
    assert "flat:SYMBOL (always the same price)" in page
    assert "closed (takes no orders)" in page
    assert "| flat_price | `OPENBELL_FLAT_PRICE` | `7` | the price of everything |" in page


def test_feeds_and_brokers_are_found_without_loading_their_libraries() -> None:
    assert set(all_feeds()) == {"sim", "replay", "alpaca", "ccxt", "yahoo", "none"}
    assert set(all_brokers()) == {"paper", "alpaca"}
    heavy = {"numpy", "ccxt", "yfinance", "pandas", "httpx2", "sqlalchemy"}
    code = f"import sys, openbell.desk.settings; print({heavy} & set(sys.modules))"
    done = subprocess.run([OPENBELL[0], "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout.strip() == "set()"
