"""A gateway with the operator as its user."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gateway.oauth.people import App, Browser
from tests.gateway.oauth.server import Gateway


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    with Gateway(tmp_path) as running:
        running.add_user()
        yield running


@pytest.fixture
def app(gateway: Gateway) -> App:
    return App(gateway)


@pytest.fixture
def browser(gateway: Gateway) -> Browser:
    return Browser(gateway)
