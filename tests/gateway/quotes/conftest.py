"""One gateway for the tests that change nothing in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gateway.streamable.gateways import TOKENS, Inside

AS_OF = "2026-01-07T15:30:20Z"


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inside]:
    """A gateway on the simulated market, at a fixed time, without rate limits of quotes."""
    home = tmp_path_factory.mktemp("quotes")
    with Inside(
        home,
        {**TOKENS, "nothing": ("alice", "")},
        AS_OF=AS_OF,
        METRICS="1",
        RATE_QUOTES="0",
        RATE_QUOTES_LIVE="0",
        RATE_QUOTES_HISTORICAL="0",
        RATE_HEALTH="0",
        RATE_METADATA="0",
    ) as made:
        yield made
