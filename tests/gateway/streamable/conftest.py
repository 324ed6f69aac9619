"""One gateway process for the tests that do not end it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gateway.streamable.gateways import Up


@pytest.fixture(scope="session")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """`openbell up --trade` with chart-signals. It must live to the end."""
    with Up(tmp_path_factory.mktemp("gateway"), CHART_SIGNALS_HTTP="1", METRICS="1", TIMEOUT="30") as made:
        yield made
        assert made.process.poll() is None, made.log()
        assert made.stop() == 0
        assert "Traceback" not in made.log()
