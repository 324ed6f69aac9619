"""The vendor's double, shared by all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.desk.chart_image.clients import HandClock
from tests.servers.chart_img_server import ChartImgServer


@pytest.fixture(scope="session")
def _server() -> Iterator[ChartImgServer]:
    with ChartImgServer() as made:
        yield made


@pytest.fixture
def server(_server: ChartImgServer) -> ChartImgServer:
    _server.reset()
    return _server


@pytest.fixture
def clock() -> HandClock:
    return HandClock()
