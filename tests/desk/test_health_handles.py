"""Looking at the health of a desk again and again keeps no file and no thread."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from openbell.desk.desk import Desk
from openbell.desk.settings import load
from tests.operations import gauges

LOOKS = 20


def test_looking_at_the_health_keeps_no_handle_and_no_thread(tmp_path: Path) -> None:
    async def story() -> None:
        async with Desk(load({"OPENBELL_HOME": str(tmp_path), "OPENBELL_TRADE": "1"})) as desk:

            async def held() -> tuple[int, int]:
                for _ in range(LOOKS):
                    desk.health.checks._checked_at = 0.0
                    await desk.health.look()
                return gauges.handles().total(), gauges.threads()

            before, after = await held(), await held()
            # A pool may still start some of its threads; one that is lost at each look would be 20 more.
            assert all(late - early < LOOKS // 2 for early, late in zip(before, after, strict=True)), (before, after)

    asyncio.run(story())


@pytest.mark.anyio
async def test_parts_that_are_being_closed_are_no_outage(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A check that runs while the desk closes finds the records closed: nobody needs to know."""
    desk = Desk(load({"OPENBELL_HOME": str(tmp_path)}))
    checks = desk.health.checks
    assert await checks.failing() == []
    await desk.close()
    checks._checked_at = 0.0
    assert await checks.failing() == []
    assert not [each for each in caplog.records if "cannot be used" in each.getMessage()]
