"""Users, clients, codes and tokens, on SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, select

from openbell.desk.settings import load
from openbell.desk.settings.access import make_access
from openbell.market.errors import InvalidParameter, Refused
from openbell.stores.access import clients, grants, static_tokens, users
from openbell.stores.access.clients import DOCUMENT, REGISTERED, OAuthClient
from openbell.stores.access.grants import ACCESS
from openbell.stores.access.static_tokens import StaticToken
from openbell.stores.access.store import AccessStore
from openbell.stores.access.tables import metadata
from openbell.stores.access.tables import tokens as token_table
from openbell.stores.access.users import Limit
from tests.servers.desks import awaited
from tests.stores.access import places
from tests.stores.access.places import CODE, GRANT, NOW, OPERATOR, AccessPlace, token
from tests.stores.records.partner import Partner
from tests.waiting import until

CLIENT = OAuthClient(
    "abc",
    REGISTERED,
    "An app",
    ("https://app.example/cb", "http://127.0.0.1/cb"),
    ("authorization_code",),
    address="192.0.2.1",
    created_at=NOW,
)


def at_once(place: AccessPlace, job: Callable[..., Any], processes: int = 4) -> list[Any]:
    """What several processes send that run the same job at the same time."""
    with ExitStack() as stack:
        partners = [stack.enter_context(Partner(job, place)) for _ in range(processes)]
        for each in partners:
            each.go()
        return [each.hear() for each in partners]


# Tables


@awaited
async def test_an_empty_database_is_migrated_to_the_tables(place: AccessPlace) -> None:
    async with place.filled():
        pass

    def differences(connection: Connection) -> Any:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        return compare_metadata(context, metadata)

    assert await place.past(differences) == []


def test_processes_that_start_at_once_create_one_key(place: AccessPlace) -> None:
    found = at_once(place, places.key)
    assert len(set(found)) == 1
    assert len(found[0]) == 32


@awaited
async def test_a_read_only_store_creates_nothing_and_reads_an_empty_database(place: AccessPlace) -> None:
    async with place.store(read_only=True) as store:
        assert await store.read(lambda connection: users.find(connection, "local")) is None
        with pytest.raises(Refused, match="read-only"):
            await store.write(lambda connection: users.remove(connection, "local", NOW))
        assert not (place.folder / "access.sqlite").exists()
        async with place.filled():
            assert await store.read(lambda connection: users.find(connection, "local")) == OPERATOR


@awaited
async def test_the_settings_choose_the_place(tmp_path: Path, database: str) -> None:
    for settings in (load({}, home=tmp_path), load({}, home=tmp_path, database_url=database)):
        store = make_access(settings)
        await store.write(lambda connection: users.put(connection, OPERATOR, NOW))
        await store.close()
    assert (tmp_path / "access.sqlite").stat().st_mode & 0o777 == 0o600
    again = AccessPlace(tmp_path, database, "openbell_access")
    async with again.store() as shared:
        assert await shared.read(lambda connection: users.find(connection, "local")) == OPERATOR


# Users and grants


@awaited
async def test_what_was_written_is_read_back(place: AccessPlace) -> None:
    async with place.filled() as store:
        await store.write(lambda connection: clients.put(connection, CLIENT))
        assert await store.read(lambda connection: clients.find(connection, "abc")) == CLIENT
        assert await store.read(lambda connection: users.find(connection, "local")) == OPERATOR
        assert await store.read(lambda connection: grants.find_code(connection, CODE.hash)) == CODE
        assert await store.read(lambda connection: grants.find_token(connection, "acce55")) == token(ACCESS, "acce55")
    async with place.store() as later:
        assert await later.read(lambda connection: grants.find_token(connection, "acce55")) == token(ACCESS, "acce55")


def the_token(store: AccessStore, digest: str = "acce55") -> Any:
    return store.read(lambda connection: grants.find_token(connection, digest))


@awaited
async def test_a_new_passphrase_revokes_every_token_of_the_user(place: AccessPlace) -> None:
    async with place.filled() as store:
        await store.write(lambda connection: users.put(connection, OPERATOR, NOW + 1))
        assert await the_token(store) is None
        assert await store.read(lambda connection: grants.find_code(connection, CODE.hash)) is None


@awaited
async def test_a_removed_user_has_no_tokens_even_if_a_user_of_this_name_is_added_again(place: AccessPlace) -> None:
    async with place.filled() as store:
        assert await store.write(lambda connection: users.remove(connection, "local", NOW + 1))
        assert not await store.write(lambda connection: users.remove(connection, "local", NOW + 1))
        assert await the_token(store) is None
        await store.write(lambda connection: users.put(connection, OPERATOR, NOW + 2))
        assert await the_token(store) is None


@awaited
async def test_a_token_has_at_most_the_scopes_of_its_user(place: AccessPlace) -> None:
    async with place.filled() as store:
        fewer = replace(GRANT, id="g2", scopes=frozenset({"read", "trade"}))
        await store.write(lambda connection: users.put(connection, replace(OPERATOR, scopes=frozenset({"read"})), NOW))
        await store.write(lambda connection: grants.create(connection, replace(CODE, hash="c2", grant=fewer), NOW))
        await store.write(lambda connection: grants.add_token(connection, replace(token(ACCESS, "a2"), grant=fewer)))
        assert (await the_token(store, "a2")).scopes == {"read"}


@awaited
async def test_a_list_of_consents_shows_the_scopes_that_tokens_have(place: AccessPlace) -> None:
    """Who may trade may also store, so that a consent to store is valid."""
    async with place.filled() as store:
        wide = replace(GRANT, id="g2", scopes=frozenset({"read", "write"}))
        trader = replace(OPERATOR, scopes=frozenset({"read", "trade"}))
        await store.write(lambda connection: users.put(connection, trader, NOW))
        await store.write(lambda connection: grants.create(connection, replace(CODE, hash="c2", grant=wide), NOW))
        issued = replace(token(ACCESS, "a2"), grant=wide, scopes=wide.scopes)
        await store.write(lambda connection: grants.add_token(connection, issued))
        found = {each.grant.id: each.grant.scopes for each in await store.read(lambda it: grants.listed(it, NOW))}
        assert found["g2"] == (await the_token(store, "a2")).scopes == {"read", "write"}


@awaited
async def test_a_revoked_grant_ends_all_its_tokens_and_no_others(place: AccessPlace) -> None:
    async with place.filled() as store:
        other = replace(GRANT, id="g2")
        await store.write(lambda connection: grants.create(connection, replace(CODE, hash="c2", grant=other), NOW))
        await store.write(lambda connection: grants.add_token(connection, replace(token(ACCESS, "a2"), grant=other)))
        await store.write(lambda connection: grants.revoke(connection, GRANT.id, NOW))
        assert await the_token(store, "acce55") is None
        assert await the_token(store, "refre5") is None
        assert await the_token(store, "a2") is not None


@awaited
async def test_another_process_sees_a_revocation_and_the_version_differs(place: AccessPlace) -> None:
    async with place.filled() as store:
        store.version()
        await asyncio.sleep(0)
        await until(lambda: store.version() == store.version(), "a steady version")
        before = store.version()
        with Partner(places.revoke, place) as partner:
            partner.go()
            assert await asyncio.to_thread(partner.hear) == "done"
        await until(lambda: store.version() != before, "another version")
        assert await the_token(store) is None


@awaited
async def test_what_has_expired_is_removed(place: AccessPlace) -> None:
    async with place.filled() as store:
        late = NOW + 1000

        def hashes(connection: Connection) -> set[str]:
            return set(connection.execute(select(token_table.c.hash)).scalars())

        await store.write(lambda connection: grants.purge(connection, late))
        assert await store.read(hashes) == {"refre5"}, "a used refresh token is needed to notice its reuse"
        await store.write(lambda connection: grants.purge(connection, NOW + 86_400))
        assert await store.read(hashes) == set()
        assert await store.read(lambda connection: grants.find_code(connection, CODE.hash)) is None


# Once


@pytest.mark.parametrize("job", [places.use_code, places.rotate, places.use_form], ids=["code", "refresh", "form"])
def test_of_several_processes_exactly_one_wins(place: AccessPlace, job: Callable[..., Any]) -> None:
    async def fill() -> None:
        async with place.filled():
            pass

    asyncio.run(fill())
    assert sorted(at_once(place, job)) == [False, False, False, True]


@awaited
async def test_an_expired_code_and_an_expired_refresh_token_cannot_be_used(place: AccessPlace) -> None:
    async with place.filled() as store:
        assert not await store.write(lambda connection: grants.use_code(connection, CODE.hash, NOW + 60))
        assert not await store.write(lambda connection: grants.rotate(connection, "refre5", NOW + 86_400))
        assert not await store.write(lambda connection: grants.rotate(connection, "acce55", NOW)), "not a refresh token"


@awaited
async def test_a_submitted_form_is_forgotten_once_it_has_expired(place: AccessPlace) -> None:
    async with place.store() as store:
        for now, accepted in ((NOW, True), (NOW + 59, False), (NOW + 60, True)):
            used = await store.write(lambda connection, now=now: grants.use_form(connection, "n", now + 60, now))  # type: ignore[misc]
            assert used is accepted


# The lock-out


def test_failures_beyond_the_free_ones_lock_for_twice_as_long_each_time() -> None:
    limit = Limit(free=3, longest=60)
    assert [limit.lock_seconds(failures) for failures in range(1, 12)] == [0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60]
    assert limit.lock_seconds(10_000) == 60


def test_guesses_of_several_processes_share_one_count(place: AccessPlace) -> None:
    assert sum(at_once(place, places.guess, 3)) == 4, "three free ones, and the one that locks"


@awaited
async def test_a_success_clears_the_user_and_takes_back_one_failure_of_the_address(place: AccessPlace) -> None:
    limits = {"user": Limit(3, 60), "address": Limit(3, 60)}

    async with place.store() as store:

        async def begun(now: float) -> float:
            return await store.write(lambda connection: users.begin_sign_in(connection, limits, now))

        for _ in range(4):
            assert await begun(NOW) == 0
        assert await begun(NOW + 0.25) == 0.75
        assert await begun(NOW + 1) == 0
        await store.write(lambda connection: users.end_sign_in(connection, "user", "address"))
        assert await begun(NOW + 2) == 0, "a success ends the lock that its own attempt caused"
        assert await begun(NOW + 2) == 2, "the address had four failures before: the fifth locks for 2 s"


# Clients and static tokens


@awaited
async def test_the_oldest_clients_without_consent_make_room_for_new_ones(place: AccessPlace) -> None:
    async with place.filled() as store:
        for number, name in enumerate(("client", "old", "newer", "newest")):
            each = replace(CLIENT, id=name, created_at=NOW + number)
            await store.write(lambda connection, each=each: clients.put(connection, each))  # type: ignore[misc]
        assert await store.read(lambda connection: clients.count_registered(connection, "192.0.2.1", NOW)) == 3

        async def room(most: int, since: float, kind: str = REGISTERED) -> bool:
            return await store.write(lambda connection: clients.make_room(connection, kind, most, since))

        assert await room(5, NOW + 9)
        assert await room(4, NOW + 9)
        assert await store.read(lambda connection: clients.find(connection, "old")) is None
        assert await store.read(lambda connection: clients.find(connection, "client")), "a user has given it consent"
        assert not await room(3, NOW + 1), "the others are too new to be removed"
        assert await room(1, NOW, DOCUMENT), "copies of documents are counted apart"


@awaited
async def test_static_tokens_are_added_listed_and_removed(place: AccessPlace) -> None:
    made = StaticToken("ci", "local", frozenset({"read"}), "ha5h", NOW, None)
    async with place.store() as store:
        await store.write(lambda connection: static_tokens.add(connection, made))
        with pytest.raises(InvalidParameter, match="openbell token remove ci"):
            await store.write(lambda connection: static_tokens.add(connection, made))
        assert await store.read(static_tokens.listed) == [made]
        assert await store.read(lambda connection: static_tokens.find(connection, "ha5h")) == made
        assert await store.write(lambda connection: static_tokens.remove(connection, "ci"))
        assert not await store.write(lambda connection: static_tokens.remove(connection, "ci"))
        assert await store.read(lambda connection: static_tokens.find(connection, "ha5h")) is None
