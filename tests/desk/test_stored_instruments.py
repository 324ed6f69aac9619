"""The stored instruments of a database that answers slowly."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from openbell.desk.bars.watchlist import StoredInstruments, in_event_loop
from openbell.desk.desk import Desk
from openbell.desk.settings import load
from openbell.market.instruments import parse
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.threads import Threads
from tests.desk.scripted import BTC, bars
from tests.waiting import until

NOW = 1_767_744_000
ETH = parse("ETH/USD")
IMPORTED = Source(Origin.IMPORTED, "import")


def test_the_event_loop_does_not_wait_for_a_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, answers = ParquetStore(tmp_path), threading.Event()
    whole = store.stored

    def slowly() -> list[Series]:
        assert answers.wait(10)
        return whole()

    async def main() -> None:
        threads = Threads()
        found = StoredInstruments(lambda: store, threads, is_remote=True)
        store.write([bars((NOW, 1.0))], IMPORTED)
        assert found.must_wait(), "they are read in a thread the first time"
        assert await threads.run(found.read) == (BTC,)
        assert not found.must_wait()
        monkeypatch.setattr(store, "stored", slowly)
        store.write([bars((NOW, 1.0), instrument=ETH)], IMPORTED)
        assert found.read() == found.read() == (BTC,), "those known before, at once"
        answers.set()
        await until(lambda: found.read() == (BTC, ETH), "the new instrument")
        await threads.close()

    asyncio.run(main())
    store.close()


@pytest.mark.parametrize("first", [True, False])
def test_the_watchlist_of_a_desk_without_a_feed_is_read_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    """The first time, and with files also after each change of the store."""
    asked: list[bool] = []
    whole = ParquetStore.stored

    def stored(store: ParquetStore) -> list[Series]:
        asked.append(in_event_loop())
        return whole(store)

    async def main() -> None:
        async with Desk(load({"OPENBELL_HOME": str(tmp_path), "OPENBELL_FEED": "none"})) as desk:
            desk.store.write([bars((NOW, 1.0))], IMPORTED)
            if not first:
                assert (await desk.watchlist.current()).instruments == (BTC,)
                desk.store.write([bars((NOW, 1.0), instrument=ETH)], IMPORTED)
            monkeypatch.setattr(ParquetStore, "stored", stored)
            found = (await desk.watchlist.current()).instruments
            assert found == ((BTC,) if first else (BTC, ETH))
            assert asked == [False]

    asyncio.run(main())
