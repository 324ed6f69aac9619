"""What imported bars cover."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

from openbell.desk.bars import BarService
from openbell.desk.importing import Options, read
from openbell.desk.importing.storing import store
from openbell.feeds.none.feed import NoFeed
from openbell.market.clock import FixedClock
from openbell.market.instruments import parse
from openbell.market.timeframes import Timeframe
from openbell.stores.parquet import ParquetStore
from tests.desk.importing.files import NOW, Files, at

AAPL = parse("AAPL")


def test_days_of_several_files_make_a_week(files: Files, tmp_path: Path) -> None:
    with closing(ParquetStore(tmp_path / "data")) as bars:
        for day in range(22, 27):  # Monday to Friday
            text = f"Date,Open,High,Low,Close,Volume\n2025-09-{day},10,{day},9,11,100\n"
            store(bars, read(files.write(text), Options(AAPL, Timeframe.D1), NOW), False, lambda _: None)

        async def weeks() -> list[tuple[float, float]]:
            service = BarService(bars, NoFeed(), FixedClock(at("2025-09-27T12:00:00Z")))
            found = await service.latest(AAPL, Timeframe.W1)
            await service.threads.close()
            return list(zip(found.high.tolist(), found.volume.tolist(), strict=True))

        assert asyncio.run(weeks()) == [(26.0, 500.0)]
