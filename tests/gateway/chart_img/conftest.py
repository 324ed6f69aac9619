"""One gateway for the tests that change nothing in it, without limits of rate and day."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from openbell.charts.config.choices import LARGEST
from openbell.gateway.app import Gateway
from openbell.gateway.chart_img.endpoint import PlanLimits
from tests.gateway.chart_img.requests import AS_OF
from tests.gateway.streamable.gateways import TOKENS, Inside


def unlimited(gateway: Gateway) -> None:
    gateway._charts._limits = PlanLimits(replace(LARGEST, per_second=10**6, burst=10**6, per_day=10**6))


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inside]:
    tokens = {
        **TOKENS,
        "reader": ("alice", "read,write"),
        "looker": ("alice", "read"),
        "trader": ("alice", "trade"),
        "nothing": ("alice", ""),
    }
    with Inside(tmp_path_factory.mktemp("chart_img"), tokens, unlimited, AS_OF=AS_OF, METRICS="1") as made:
        yield made
