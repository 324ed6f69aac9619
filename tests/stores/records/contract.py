"""The tests that the records must pass on every database. A test module subclasses `RecordsContract` and defines `place`."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import socket
import traceback
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

import pytest
from sqlalchemy import Connection, func, insert, select, text

from openbell.market.clock import FixedClock
from openbell.market.errors import LeaseHeld, LeaseLost, StoreError
from openbell.stores.leases import this_process
from openbell.stores.port import Lease
from openbell.stores.records import leases
from openbell.stores.records.journal import Journal, LedgerBroken, head_of
from openbell.stores.records.ledger_head_file import HeadFile
from openbell.stores.records.records import Records
from openbell.stores.records.snapshot import View
from openbell.stores.records.tables import RECORDS, decisions, ledger, marks
from openbell.stores.records.tables import leases as lease_rows
from openbell.stores.threads import CALLER
from openbell.trading.ledger import GENESIS, Head, LedgerEntry, canonical, seal
from tests.counts import runs
from tests.stores.records import partner
from tests.stores.records.partner import Partner
from tests.stores.records.places import NOON, Place, decision, entries

T = TypeVar("T")
SEED = int(os.environ.get("OPENBELL_SEED", "20251101"))
AWKWARD = [
    "",
    "quote ' \" \\ % :name $1 ?",
    "Zürich 東京 🚀 \u202e\u0000"[:-1],
    "tab\tline\nreturn\r end \x7f\x01",
    "e\u0301 is not \u00e9",
    "long " * 250_000,
]


def run(main: Callable[[], Awaitable[T]]) -> T:
    """Run a test's coroutine."""

    async def story() -> T:
        return await main()

    return asyncio.run(story())


def rows(connection: Connection | View) -> list[dict[str, Any]]:
    """All decisions, in the order of their entries."""
    return [dict(row) for row in connection.execute(select(decisions).order_by(decisions.c.seq)).mappings()]


def put(name: str, **values: Any) -> Callable[[Journal], int]:
    """A write of one row."""
    return lambda journal: journal.put("decision", decision(name, **values))


class RecordsContract:
    """Each test checks one guarantee."""

    kills = runs(6, soak=200)

    # Atomicity

    def test_a_write_happens_wholly_or_not_at_all(self, place: Place) -> None:
        async def main() -> None:
            async with place.opened() as records:
                await records.write(put("first"))
                before, noted = await place.entries(), place.head.read()

                def half(journal: Journal) -> None:
                    journal.put("decision", decision("second"))
                    journal.put("decision", decision("first", reasoning="changed"))
                    journal.connection.execute(insert(marks), {"name": "engine", "until": 1.0})
                    raise ZeroDivisionError

                with pytest.raises(ZeroDivisionError):
                    await records.write(half)
                assert await place.entries() == before
                assert place.head.read() == noted
                assert [row["reasoning"] for row in await records.read(rows)] == [""]
                assert await records.read(lambda c: c.execute(select(marks)).all()) == []
                assert await records.write(put("third")) == 2

        run(main)

    def test_all_rows_of_a_write_are_there_with_their_entries(self, place: Place) -> None:
        async def main() -> None:
            async with place.opened() as records:

                def several(journal: Journal) -> int:
                    for number in range(30):
                        journal.put("decision", decision(f"d{number}"), new=True)
                    journal.put("decision", decision("d7", reasoning="again"))
                    journal.note("verdict", "v1", {"allowed": True})
                    return journal.seq

                assert await records.write(several) == 32
                found = {row["id"]: row for row in await records.read(rows)}
                assert len(found) == 30
                assert (found["d7"]["reasoning"], found["d7"]["seq"]) == ("again", 31)
                assert [entry.kind for entry in await place.entries()] == ["decision"] * 31 + ["verdict"]
                assert await place.faults() == []

        run(main)

    def test_a_write_fails_if_one_of_its_rows_could_not_be_written(self, place: Place) -> None:
        async def main() -> None:
            async with place.opened() as records:
                await records.write(put("first"))

                def careless(journal: Journal) -> None:
                    with suppress(Exception):
                        journal.put("decision", decision("first"), new=True)

                with pytest.raises(StoreError):
                    await records.write(careless)
                assert len(await place.entries()) == 1

        run(main)

    def test_a_write_without_entries_leaves_the_head_alone(self, place: Place) -> None:
        async def main() -> None:
            async with place.opened() as records:
                await records.write(lambda j: j.connection.execute(insert(marks), {"name": "a", "until": 1.5}))
                assert await records.read(lambda c: c.execute(select(marks.c.until)).scalar_one()) == 1.5
                noted = place.head.read()
                assert noted is not None
                assert noted.seq == 0

        run(main)

    def test_a_write_is_durable_and_its_head_noted_when_it_returns(self, place: Place) -> None:
        async def main() -> None:
            records = place.open()
            seq = await records.write(put("first"))
            [entry] = await place.entries()
            assert place.head.read() == Head(seq, entry.hash)
            await records.close()
            async with place.opened() as again:
                assert [row["id"] for row in await again.read(rows)] == ["first"]

        run(main)

    def test_the_head_is_announced_before_the_commit_and_noted_after_it(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen: list[tuple[str, int, list[int]]] = []

        async def main() -> None:
            async with place.opened() as records:
                await records.write(put("first"))
                intend, note = records.head.intend, records.head.note

                def announced(found: Head, wanted: Head) -> None:
                    intend(found, wanted)
                    seen.append(("intended", place.head.ends()[-1].seq, there()))

                def watched(head: Head) -> None:
                    seen.append(("noted", head.seq, there()))
                    note(head)

                def there() -> list[int]:
                    return [entry.seq for entry in asyncio.run(peek(place))]

                monkeypatch.setattr(records.head, "intend", announced)
                monkeypatch.setattr(records.head, "note", watched)
                await records.write(put("second"))

        run(main)
        assert seen == [("intended", 2, [1]), ("noted", 2, [1, 2])]

    def test_nothing_is_written_if_the_head_cannot_be_announced(self, place: Place) -> None:
        async def main() -> None:
            async with place.opened() as records:
                await records.write(put("first"))
                away = place.folder / "away"
                (place.folder / "head").rename(away)
                (place.folder / "head").mkdir()
                with pytest.raises(StoreError, match=r"nothing was written, .*cannot write .*head: Is a directory"):
                    await records.write(put("second"))
                assert len(await place.entries()) == 1
                (place.folder / "head").rmdir()
                away.rename(place.folder / "head")
                assert await records.write(put("third")) == 2
                assert await place.faults() == []

        run(main)

    def test_a_head_that_cannot_be_noted_is_an_error_and_the_next_write_succeeds(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def main() -> None:
            async with place.opened() as records:
                await records.write(put("first"))
                with monkeypatch.context() as patch:
                    patch.setattr(records.head, "note", failing("no room"))
                    with pytest.raises(StoreError, match="this was written, but the ledger's head was not noted"):
                        await records.write(put("second"))
                assert await place.faults() == [], "its end was announced"
                assert await records.write(put("third")) == 3
                assert await place.faults() == []

        run(main)

    def test_without_a_place_for_the_head_nothing_is_written(self, place: Place) -> None:
        async def main() -> None:
            records = Records(place.database(), HeadFile(Path("/proc/openbell/head")), FixedClock(NOON))
            for _ in range(2):
                with pytest.raises(StoreError, match="cannot write /proc/openbell/head"):
                    await records.write(put("first"))
            assert await records.read(rows) == []
            await records.close()

        run(main)

    # Concurrency

    def test_fifty_writers_in_one_process_make_one_chain(self, place: Place) -> None:
        async def main() -> None:
            async with place.opened() as records, place.opened() as others:
                seqs = await asyncio.gather(
                    *(some.write(put(f"d{n}")) for n, some in enumerate([records, others] * 25)),
                )
                assert sorted(seqs) == list(range(1, 51))
                assert await place.faults() == []
                noted = place.head.read()
                assert noted
                assert noted.seq == 50
                assert len(await records.read(rows)) == 50

        run(main)

    @pytest.mark.parametrize("writing", [True, False], ids=["writes", "reads"])
    def test_a_flood_of_one_principal_leaves_a_turn_for_another(self, place: Place, writing: bool) -> None:
        """Whatever one has queued, another one is served among the next few."""
        done: list[str] = []

        async def main() -> None:
            async with place.opened() as records:
                await records.write(put("first"))

                async def ask(principal: str, number: int) -> None:
                    CALLER.set(principal)
                    await (records.write(put(f"{principal}{number}")) if writing else records.read(rows))
                    done.append(principal)

                flood = [asyncio.create_task(ask("alice", number)) for number in range(60)]
                await asyncio.wait(flood, return_when=asyncio.FIRST_COMPLETED)
                before = len(done)
                await ask("bob", 0)
                assert done.index("bob") - before < 20
                await asyncio.gather(*flood)

        run(main)

    def test_processes_that_begin_at_the_same_moment_make_one_chain(self, place: Place) -> None:
        with ExitStack() as stack:
            partners = [stack.enter_context(Partner(partner.write, place, f"p{n}", 15)) for n in range(4)]
            for each in partners:
                each.go()
            assert [each.hear() for each in partners] == ["done"] * 4

        async def main() -> None:
            assert [entry.seq for entry in await place.entries()] == list(range(1, 61))
            assert await place.faults() == []
            noted = place.head.read()
            assert noted
            assert noted.seq == 60

        run(main)

    def test_a_reader_sees_one_state_while_others_write(self, place: Place) -> None:
        async def main() -> None:
            async with place.opened() as records:
                await records.write(put("first"))

                def count(connection: Connection | View) -> int:
                    return connection.execute(select(func.count()).select_from(decisions)).scalar_one()

                def twice(view: View) -> tuple[int, int, int]:
                    connection = view.connection
                    before = count(connection)
                    other = Thread(target=lambda: asyncio.run(write_elsewhere()))
                    other.start()
                    other.join()
                    return before, count(connection), len(entries(connection))

                async def write_elsewhere() -> None:
                    async with place.opened() as elsewhere:
                        await elsewhere.write(put("second"))

                assert await records.read(twice) == (1, 1, 1)
                assert await records.read(count) == 2

        run(main)

    def test_a_read_transaction_cannot_write(self, place: Place) -> None:
        async def main() -> None:
            async with place.opened() as records:
                with pytest.raises(StoreError, match=r"read.?only|cannot be written"):
                    await records.read(lambda c: c.execute(insert(marks), {"name": "a", "until": 1.0}))
                await records.write(lambda j: j.connection.execute(insert(marks), {"name": "a", "until": 1.0}))
                with pytest.raises(StoreError, match=r"read.?only|cannot be written"):
                    await records.read(lambda c: c.execute(insert(marks), {"name": "b", "until": 1.0}))

        run(main)

    # Cancelled callers

    def test_a_write_finishes_even_if_its_caller_is_cancelled(self, place: Place) -> None:
        async def main() -> None:
            async with place.opened() as records:
                await records.write(put("first"))
                loop = asyncio.get_running_loop()

                def work(journal: Journal) -> None:
                    loop.call_soon_threadsafe(caller.cancel)
                    journal.put("decision", decision("second"))

                caller = asyncio.ensure_future(records.write(work))
                with pytest.raises(asyncio.CancelledError):
                    await caller
                await records.close()
                noted = place.head.read()
                assert noted
                assert noted.seq == 2
                assert await place.faults() == []

        run(main)

    def test_a_failure_that_nobody_waits_for_is_logged(self, place: Place, caplog: pytest.LogCaptureFixture) -> None:
        async def main() -> None:
            async with place.opened() as records:
                await records.write(put("first"))
                loop = asyncio.get_running_loop()

                def work(journal: Journal) -> None:
                    loop.call_soon_threadsafe(caller.cancel)
                    journal.connection.execute(text("SELECT 1"))
                    journal.connection.execute(text("SELECT 1 FROM nowhere"))

                caller = asyncio.ensure_future(records.write(work))
                with pytest.raises(asyncio.CancelledError):
                    await caller

        with caplog.at_level(logging.ERROR, "openbell"):
            run(main)
        assert "a write failed after its caller was cancelled" in caplog.text
        assert "nowhere" in caplog.text

    def test_closed_records_refuse_every_call(self, place: Place) -> None:
        async def main() -> None:
            records = place.open()
            await records.write(put("first"))
            await records.close()
            with pytest.raises(StoreError, match="closed"):
                await records.write(put("second"))
            with pytest.raises(StoreError, match="closed"):
                await records.read(rows)
            with pytest.raises(StoreError, match="closed"):
                await records.database.run(rows, writing=False)

        run(main)

    # Values

    def test_rows_come_back_exactly(self, place: Place) -> None:
        written = [
            decision(
                f"d{number}",
                reasoning=words,
                confidence=[0.1, 1e-300, 1.7976931348623157e308, 5e-324, 2 / 3, -0.0][number],
                opportunity_score=[None, 0.0, 1 / 3, -1e-9, 1e16, 123456789.987654321][number],
                tool_calls=[None, [], {}, [{"a": [1, 2.5, None, True, words]}], {"ключ": words}, [0.1, 1e300, 2**53]][
                    number
                ],
            )
            for number, words in enumerate(AWKWARD)
        ]

        async def main() -> None:
            async with place.opened() as records:
                for row in written:
                    await records.write(lambda journal: journal.put("decision", row))  # noqa: B023
                found = await records.read(rows)
                for wanted, row, entry in zip(written, found, await place.entries(), strict=True):
                    assert row.pop("seq") == entry.seq
                    assert row == wanted
                    assert canonical(row) == entry.body
                assert await place.faults() == []

        run(main)

    def test_whole_numbers_in_the_clock_and_in_columns_of_floats_are_hashed_as_they_are_read(
        self, place: Place
    ) -> None:
        async def main() -> None:
            async with place.opened(FixedClock(1_760_000_000)) as records:
                await records.write(put("d", confidence=1, opportunity_score=0, created_at=1_760_000_000))
                [row] = await records.read(rows)
                [entry] = await place.entries()
                del row["seq"]
                assert canonical(row) == entry.body
                assert await place.faults() == []

        run(main)

    def test_a_value_without_canonical_json_is_not_written(self, place: Place) -> None:
        async def main() -> None:
            async with place.opened() as records:
                for value in (float("nan"), float("inf")):
                    with pytest.raises(ValueError, match="JSON"):
                        await records.write(put("d", confidence=value))
                assert await records.read(rows) == []

        run(main)

    # Failures

    @pytest.mark.parametrize(
        "statement",
        [
            "SELECT 'hidden-value' FROM nowhere",
            "INSERT INTO marks VALUES ('hidden-value', NULL)",
            "INSERT INTO marks VALUES (:value, NULL)",
            "INSERT INTO decisions (id) VALUES (:value)",
            "INSERT INTO leases VALUES ('twice', 1, :value, 1.0), ('twice', 1, :value, 1.0)",
            "SELECT ((('hidden-value'",
        ],
    )
    def test_a_failure_names_place_and_cause_without_statement_values_or_password(
        self, place: Place, statement: str
    ) -> None:
        async def main() -> None:
            async with place.opened() as records:

                def work(journal: Journal) -> None:
                    journal.connection.execute(text(statement), {"value": "hidden-value"} if ":" in statement else {})

                with pytest.raises(StoreError) as caught:
                    await records.write(work)
                assert_hides(caught.value, "hidden-value", statement, "s3cret")
                assert records.database.where in str(caught.value)
                assert await records.write(put("d")) == 1

        run(main)

    def test_a_process_does_not_write_into_tables_that_a_newer_openbell_has_migrated(self, place: Place) -> None:
        async def main() -> None:
            async with place.opened() as records:
                await records.write(put("before"))
                lease = await acquire(records, "one")
                await place.tamper("UPDATE alembic_version SET version_num = '9999'")
                ran: list[int] = []
                with pytest.raises(StoreError, match=r"have version 9999 .* nothing was written"):
                    await records.write(lambda journal: ran.append(1), lease=lease)
                for _ in range(2):
                    with pytest.raises(StoreError, match="version 9999, and this Openbell supports versions up to"):
                        await records.write(lambda journal: ran.append(2))
                assert ran == []
                assert len(await place.entries()) == 1
                await place.tamper(f"UPDATE alembic_version SET version_num = '{RECORDS.newest}'")
                assert await records.write(put("after"), lease=lease) == 2

        run(main)

    # Leases

    def test_a_lease_has_one_holder_and_its_token_grows(self, place: Place) -> None:
        async def main() -> None:
            async with place.opened() as records:
                first = await acquire(records, "one")
                with pytest.raises(LeaseHeld, match="already running as one") as caught:
                    await acquire(records, "two")
                assert caught.value.details["holder"] == "one"
                assert 50 < caught.value.details["expires_in_s"] <= 60
                assert await records.read(lambda c: leases.holder(c, "engine")) == "one"
                await records.write(lambda journal: leases.release(journal.connection, first))
                assert await records.read(lambda c: leases.holder(c, "engine")) is None
                second = await acquire(records, "two")
                assert second.token > first.token
                again = await acquire(records, "two")
                assert again.token > second.token

        run(main)

    def test_a_writer_that_lost_its_lease_writes_nothing(self, place: Place) -> None:
        async def main() -> None:
            async with place.opened() as records:
                old = await acquire(records, "one")
                await records.write(put("held"), lease=old)
                await expire(place)
                await records.write(put("ended, but nobody took it"), lease=old)
                new = await acquire(records, "two")
                ran: list[int] = []
                with pytest.raises(LeaseLost, match="two"):
                    await records.write(lambda journal: ran.append(journal.note("k", "x", 1)), lease=old)
                with pytest.raises(LeaseLost, match="two"):
                    await records.write(lambda journal: leases.renew(journal.connection, old, 60))
                await records.write(lambda journal: leases.release(journal.connection, old))
                await records.write(put("two's"), lease=new)
                assert ran == []
                assert [row["id"] for row in await records.read(rows)][-1] == "two's"
                assert len(await place.entries()) == 3

        run(main)

    def test_late_writes_after_a_release_are_refused(self, place: Place) -> None:
        async def main() -> None:
            async with place.opened() as records:
                lease = await acquire(records, "one")
                await records.write(lambda journal: leases.release(journal.connection, lease))
                with pytest.raises(LeaseLost, match="nobody"):
                    await records.write(put("late"), lease=lease)

        run(main)

    def test_renewing_extends_a_lease(self, place: Place) -> None:
        async def main() -> None:
            async with place.opened() as records:
                lease = await acquire(records, "one")
                await expire(place)
                assert await records.read(lambda c: leases.holder(c, "engine")) is None
                await records.write(lambda journal: leases.renew(journal.connection, lease, 60))
                assert await records.read(lambda c: leases.holder(c, "engine")) == "one"
                with pytest.raises(LeaseHeld):
                    await acquire(records, "two")

        run(main)

    def test_only_one_of_many_gets_the_lease(self, place: Place) -> None:
        async def main() -> None:
            async with place.opened() as records, place.opened() as others:
                taken = await asyncio.gather(
                    *(acquire(some, f"h{n}") for n, some in enumerate([records, others] * 5)), return_exceptions=True
                )
                assert sorted(type(each).__name__ for each in taken) == ["Lease"] + ["LeaseHeld"] * 9

        run(main)

    def test_the_lease_of_a_holder_that_died_on_this_machine_is_free(self, place: Place) -> None:
        async def main() -> None:
            async with place.opened() as records:
                with Partner(partner.hold, place) as other:
                    other.go()
                    token = other.hear()
                    with pytest.raises(LeaseHeld):
                        await acquire(records, this_process("me"), 3600)
                    other.kill()
                    assert await records.read(lambda c: leases.holder(c, "engine")) is None
                    assert (await acquire(records, this_process("me"), 3600)).token == token + 1

        run(main)

    def test_a_holder_on_another_machine_keeps_its_lease(self, place: Place) -> None:
        async def main() -> None:
            async with place.opened() as records:
                await acquire(records, f"engine@not-{socket.gethostname()}:1:1")
                with pytest.raises(LeaseHeld):
                    await acquire(records, this_process("me"))

        run(main)

    # The ledger and its head

    @pytest.mark.parametrize("cut", ["seq > 2", "seq = 3", "seq > 0"])
    def test_a_ledger_that_was_cut_is_not_written_to(self, place: Place, cut: str) -> None:
        async def main() -> None:
            await three(place)
            await place.tamper(f"DELETE FROM ledger WHERE {cut}")
            async with place.opened() as records:
                with pytest.raises(LedgerBroken, match="its entry 3 is not the one that was noted"):
                    await records.write(put("more"))
                with pytest.raises(LedgerBroken, match="are not those that were written"):
                    await records.read(rows)
                assert len(await records.read(rows, check_head=False)) == 3
                left = len(await place.entries())
                assert await records.adopt() == await place.past(head_of)
                assert await records.write(put("more")) == left + 1
                assert await place.faults() == []

        run(main)

    def test_a_running_process_goes_on_after_an_operator_has_accepted_a_truncated_ledger(self, place: Place) -> None:
        async def main() -> None:
            await three(place)
            async with place.opened() as running, place.opened() as operator:
                forgotten: list[int] = []
                running.on_replaced.append(lambda: forgotten.append(1))
                assert len(await running.read(rows)) == 3
                await place.tamper("DELETE FROM ledger WHERE seq > 1", "DELETE FROM decisions WHERE seq > 1")
                for _ in range(2):
                    with pytest.raises(LedgerBroken):
                        await running.read(rows)
                    with pytest.raises(LedgerBroken):
                        await running.write(put("refused"))
                assert forgotten == []
                await operator.adopt()
                with pytest.raises(StoreError, match="another ledger was accepted"):
                    await running.write(put("computed from the earlier ledger"))
                assert forgotten == [1]
                assert await running.write(put("after")) == 2
                assert len(await running.read(rows)) == 2
                assert forgotten == [1]
                assert await place.faults() == []

        run(main)

    def test_a_ledger_of_another_hash_scheme_is_read_and_not_written_to(self, place: Place) -> None:
        async def main() -> None:
            async with place.opened() as records:
                await records.write(put("first"))
            await place.tamper("UPDATE ledger SET hash = '2:' || substr(hash, 3)")
            (entry,) = await place.entries()
            place.head.reset(Head(1, entry.hash))
            async with place.opened() as records:
                with pytest.raises(StoreError, match="has hash scheme 2, and this Openbell knows scheme 1"):
                    await records.write(put("second"))
                assert await records.read(lambda view: head_of(view.connection).seq) == 1
            assert [fault.reason for fault in await place.faults()] == [
                "entry 1 has hash scheme 2, and this Openbell knows scheme 1: use the Openbell that wrote it"
            ]

        run(main)

    def test_a_ledger_that_was_rewritten_is_not_written_to(self, place: Place) -> None:
        async def main() -> None:
            await three(place)
            await rewrite(place, 3)
            assert [fault.seq for fault in await place.faults()] == [3]
            async with place.opened() as records:
                with pytest.raises(LedgerBroken, match="its entry 3 is not the one that was noted"):
                    await records.write(put("more"))

        run(main)

    def test_a_ledger_that_is_cut_while_it_is_in_use_is_not_written_to(self, place: Place) -> None:
        async def main() -> None:
            async with place.opened() as records:
                for name in ("a", "b", "c"):
                    await records.write(put(name))
                await place.tamper("DELETE FROM ledger WHERE seq = 3")
                with pytest.raises(LedgerBroken, match="ends at entry 2"):
                    await records.write(put("more"))
                assert len(await place.entries()) == 2
                assert (await records.adopt()).seq == 2
                assert await records.write(put("more")) == 3

        run(main)

    def test_a_ledger_that_is_rewritten_and_longer_while_it_is_in_use_is_not_written_to(self, place: Place) -> None:
        async def main() -> None:
            async with place.opened() as records:
                for name in ("a", "b", "c"):
                    await records.write(put(name))
                await rewrite(place, 5)
                with pytest.raises(LedgerBroken, match="entry 3 is not the one that was noted: it was cut"):
                    await records.write(put("more"))
                assert len(await place.entries()) == 5

        run(main)

    def test_a_failed_commit_leaves_nothing_behind(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        async def main() -> None:
            async with place.opened() as records:
                await records.write(put("first"))
                intend = records.head.intend

                def fail(found: Head, wanted: Head) -> None:
                    intend(found, wanted)
                    raise StoreError("the commit failed")

                with monkeypatch.context() as patch:
                    patch.setattr(records.head, "intend", fail)
                    for name in ("second", "third"):
                        with pytest.raises(StoreError, match="the commit failed"):
                            await records.write(put(name))
                assert len(place.head.ends()) == 2
                assert await place.faults() == []
                assert await records.write(put("fourth")) == 2
                assert len(place.head.ends()) == 1
                assert await place.faults() == []

        run(main)

    def test_entries_that_were_not_announced_are_found(self, place: Place) -> None:
        """On SQLite, writes are refused then; on PostgreSQL they may come from another machine."""

        async def main() -> None:
            await three(place)
            await forge(place, 2)
            said = "2 entries come after the head that was noted (entry 3): this home did not write them"
            assert [fault.reason for fault in await place.faults()] == [said]
            async with place.opened() as records:
                if place.url:
                    assert await records.write_refusal() is None
                    assert await records.write(put("more")) == 6
                    assert await place.faults() == []
                    return
                wanted = r"ends at entry 5, and its head was noted at 3: .*nothing is written to it.*--adopt"
                objection = await records.write_refusal()
                assert objection
                assert "ends at entry 5, and its head was noted at 3" in objection
                for _ in range(2):
                    with pytest.raises(LedgerBroken, match=wanted):
                        await records.write(put("more"))
                assert len(await place.entries()) == 5
                assert [fault.reason for fault in await place.faults()] == [said], "no head covers them"
                assert (await records.adopt()).seq == 5
                assert await records.write_refusal() is None
                assert await records.write(put("more")) == 6

        run(main)

    def test_an_entry_that_replaces_an_announced_one_is_found(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def main() -> None:
            async with place.opened() as records:
                await records.write(put("first"))
                monkeypatch.setattr(records.head, "note", failing("killed"))
                with pytest.raises(StoreError, match="killed"):
                    await records.write(put("second"))
            assert await place.faults() == []
            await place.tamper("DELETE FROM ledger WHERE seq = 2")
            assert await place.faults() == [], "a write that was not acknowledged may be missing"
            await forge(place, 1)
            assert len(await place.faults()) == 1

        run(main)

    def test_a_head_file_of_an_earlier_version_can_be_used(self, place: Place) -> None:
        """Its head file has two slots and no intended head."""

        async def main() -> None:
            await three(place)
            file = place.folder / "head"
            file.write_bytes(file.read_bytes()[:256])
            assert await place.faults() == []
            async with place.opened() as records:
                assert await records.write_refusal() is None
                assert await records.write(put("more")) == 4
            assert await place.faults() == []
            assert len(file.read_bytes()) > 256

        run(main)

    def test_a_first_write_that_was_killed_before_its_head_was_noted_is_trusted(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def main() -> None:
            async with place.opened() as killed:
                note = killed.head.note

                def die(head: Head) -> None:
                    if head.seq:
                        raise StoreError("killed")
                    note(head)

                monkeypatch.setattr(killed.head, "note", die)
                with pytest.raises(StoreError, match="killed"):
                    await killed.write(put("first"))
            async with place.opened() as records:
                assert await records.write(put("second")) == 2

        run(main)

    def test_two_processes_may_start_an_empty_ledger_at_once(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def main() -> None:
            async with place.opened() as records, place.opened() as other:
                read = records.head.read

                def late() -> Head | None:
                    found = read()
                    monkeypatch.undo()
                    asyncio.run_coroutine_threadsafe(other.write(put("first")), loop).result()
                    return found

                loop = asyncio.get_running_loop()
                monkeypatch.setattr(records.head, "read", late)
                assert await records.write(put("second")) == 2
                assert await place.faults() == []

        run(main)

    def test_a_ledger_whose_head_is_missing_is_not_written_to(self, place: Place) -> None:
        async def main() -> None:
            await three(place)
            (place.folder / "head").unlink()
            async with place.opened() as records:
                with pytest.raises(LedgerBroken, match="3 entries, and this home has noted no head"):
                    await records.write(put("more"))
                await records.adopt()
                assert await records.write(put("more")) == 4

        run(main)

    def test_a_ledger_whose_head_is_damaged_is_not_written_to(self, place: Place) -> None:
        async def main() -> None:
            await three(place)
            (place.folder / "head").write_bytes(b"x" * 256)
            async with place.opened() as records:
                with pytest.raises(StoreError, match=r"head is damaged.*--adopt"):
                    await records.write(put("more"))
                assert len(await place.entries()) == 3
                await records.adopt()
                assert await records.write(put("more")) == 4

        run(main)

    def test_one_torn_slot_of_the_head_file_is_harmless(self, place: Place) -> None:
        async def main() -> None:
            await three(place)
            whole = (place.folder / "head").read_bytes()
            for start in (0, 128, 256, 384):
                (place.folder / "head").write_bytes(whole[:start] + b"\0" * 60 + whole[start + 60 :])
                async with place.opened() as records:
                    await records.write(put("more"))
                assert await place.faults() == []
                whole = (place.folder / "head").read_bytes()

        run(main)

    # Killed processes

    @pytest.mark.parametrize("moment", partner.MOMENTS)
    def test_a_writer_may_be_killed_at_any_moment(self, place: Place, moment: str) -> None:
        with Partner(partner.die, place, moment) as writer:
            writer.go()
            assert writer.hear() == 1
            with pytest.raises(AssertionError, match="it ended"):
                writer.hear()
        there = partner.MOMENTS.index(moment) >= partner.MOMENTS.index("committed")

        async def main() -> None:
            assert len(await place.entries()) == 1 + there
            assert await place.faults() == []
            async with place.opened() as records:
                assert await records.write_refusal() is None
                assert await records.write(put("after")) == 2 + there
            assert await place.faults() == []
            assert len(place.head.ends()) == 1

        run(main)

    def test_a_killed_writer_loses_nothing_that_it_acknowledged(self, place: Place) -> None:
        chance = random.Random(SEED)
        acknowledged = 0
        for number in range(self.kills):
            where = f"seed {SEED}, kill {number}"
            with Partner(partner.forever, place, f"k{number}") as writer:
                writer.go()
                said = [writer.hear() for _ in range(chance.randrange(1, 4))]
                for _ in range(chance.randrange(10_000)):
                    os.getppid()  # until some point of the next write
                said += writer.kill()
            assert said[0] > acknowledged, where
            acknowledged = said[-1]
            found = run(place.entries)
            assert acknowledged <= len(found) <= acknowledged + 1, where
            assert run(place.faults) == [], where

        async def main() -> None:
            async with place.opened() as records:
                sealed = {entry.key: json.loads(entry.body) for entry in await place.entries()}
                assert {row["id"] for row in await records.read(rows)} == set(sealed)
                await records.write(put("after"))

        run(main)


def assert_hides(error: BaseException, *secrets: str) -> None:
    """Neither the error nor its traceback holds a secret; source lines of the tests in it are ignored."""
    told = str(error) + "".join(
        line
        for line in "".join(traceback.format_exception(error)).splitlines(keepends=True)
        if not line.startswith("    ")  # quoted source
    )
    for secret in secrets:
        assert secret not in told


async def acquire(records: Records, holder: str, ttl: float = 60) -> Lease:
    """Take the engine's lease."""
    return await records.write(lambda journal: leases.acquire(journal.connection, "engine", holder, ttl))


async def expire(place: Place) -> None:
    """Make every lease expire."""
    await place.past(lambda c: c.execute(lease_rows.update().values(expires=lease_rows.c.expires - 3600)))


async def three(place: Place) -> None:
    """Write three entries and close the records."""
    async with place.opened() as records:
        for name in ("a", "b", "c"):
            await records.write(put(name))


def failing(words: str) -> Callable[..., None]:
    """A function that always raises `StoreError`."""

    def fail(*_given: object) -> None:
        raise StoreError(words)

    return fail


async def peek(place: Place) -> list[LedgerEntry]:
    """The ledger as another process sees it now."""
    database = place.database()
    try:
        return await database.run(entries, writing=False)
    finally:
        await database.close()


async def forge(place: Place, count: int) -> None:
    """Append entries with correct hashes and rows, without announcing them."""

    def work(connection: Connection) -> None:
        journal = Journal(connection, NOON)
        for number in range(count):
            journal.put("decision", decision(f"forged-{journal.seq}-{number}"), new=True)
        journal.finish()

    await place.past(work)


async def rewrite(place: Place, count: int) -> None:
    """Replace the ledger by another one with correct hashes."""

    def work(connection: Connection | View) -> None:
        connection.execute(ledger.delete())
        prev = GENESIS
        for seq in range(1, count + 1):
            entry = seal(seq, NOON, "decision", "forged", "{}", prev)
            connection.execute(
                insert(ledger),
                {name: getattr(entry, name) for name in ("seq", "at", "kind", "key", "body", "prev", "hash")},
            )
            prev = entry.hash

    await place.past(work)
