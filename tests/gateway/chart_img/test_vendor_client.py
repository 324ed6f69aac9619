"""The client that was written for the vendor, with this gateway as the vendor: every study and every drawing."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

from openbell.charts.config.model import KINDS, TYPES, Coordinate
from openbell.charts.config.reading import read_config
from openbell.charts.studies.catalogue import all_studies
from openbell.desk.pictures.chart_image.vendor import VendorClient
from openbell.market.bars import Bars
from openbell.market.timeframes import CHART
from tests.client import PATIENCE
from tests.desk.chart_image.clients import HandClock, client, used
from tests.gateway.chart_img.requests import AS_OF, SMALL
from tests.gateway.streamable.gateways import Inside

NOW = datetime.fromisoformat(AS_OF)


async def drawn(made: VendorClient, **change: object) -> bytes:
    """Returns the picture of a config in the contract's form."""
    reading = read_config({**SMALL, "range": "7D", **change})
    assert reading.config is not None, reading.problems
    found = await made.draw(reading.config, NOW)
    assert (found.status, found.format, found.notes) == (200, "png", ())
    assert found.stated is not None
    assert found.stated["data"] == "simulated", "another desk says what its picture shows"
    assert Image.open(BytesIO(found.data)).size == (400, 300)
    return found.data


def test_every_study_and_every_drawing_is_drawn(gateway: Inside, tmp_path: Path) -> None:
    async def work(made: VendorClient) -> None:
        bare = await drawn(made)
        assert len(all_studies()) == 93
        for study in all_studies().values():
            assert await drawn(made, studies=[{"name": study.name}]) != bare, study.name
        assert len(KINDS) == 15
        prices = shown_prices(gateway)
        for kind in KINDS.values():
            places: dict[Coordinate, Iterator[object]] = {
                Coordinate.PRICE: iter(prices),
                Coordinate.TIME: iter(("2026-01-03T00:00:00Z", "2026-01-05T12:00:00Z")),
                Coordinate.TEXT: iter(("a text",)),
            }
            coordinates = {name: next(places[TYPES[name]]) for name in kind.required}
            if "Position" in kind.name:
                low, entry, high = sorted(prices)
                ends = (high, low) if kind.name == "Long Position" else (low, high)
                coordinates = {"entryPrice": entry, "targetPrice": ends[0], "stopPrice": ends[1]}
            assert await drawn(made, drawings=[{"type": kind.name, "coordinates": coordinates}]) != bare, kind.name

    key = gateway.tokens["reader"]
    used(client(f"http://{gateway.host}", tmp_path, HandClock(NOW), plan="ENTERPRISE", key=key), work)


def shown_prices(gateway: Inside) -> list[float]:
    """Returns three prices of the shown range, the second one above the others."""

    async def bars() -> Bars:
        instrument = await gateway.desk.bars.find(SMALL["symbol"])
        return await gateway.desk.bars.newest(instrument, CHART["1h"], 7 * 24)

    low, middle, high = np.quantile(gateway.run(bars).close, [0.2, 0.5, 0.8]).tolist()
    return [middle, high, low]


def test_lists_and_stored_pictures_are_the_vendors(gateway: Inside, tmp_path: Path) -> None:
    async def work(made: VendorClient) -> str:
        assert "BINANCE" in {each.id for each in await made.exchanges()}
        assert "BTCUSDT" in {each.symbol for each in await made.symbols("BINANCE")}
        reading = read_config(SMALL)
        assert reading.config is not None
        stored = await made.store(reading.config, NOW)
        assert (stored.format, stored.status) == ("png", 200)
        assert abs(stored.expires_at - datetime.now(UTC) - timedelta(days=120)) < timedelta(minutes=5)
        return stored.url

    key = gateway.tokens["reader"]
    url = used(client(f"http://{gateway.host}", tmp_path, HandClock(), key=key), work)
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        assert Image.open(BytesIO(answer.read())).size == (400, 300)
