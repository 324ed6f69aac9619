"""Where users and tokens are stored, and jobs of other processes on the same store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from openbell.stores.access import grants, users
from openbell.stores.access.grants import ACCESS, REFRESH, Code, Grant, Token
from openbell.stores.access.store import A_TABLE, AccessStore
from openbell.stores.access.users import Limit, PassphraseHash, User
from openbell.stores.records.database import Database
from openbell.stores.records.postgres import PoolLimits, PostgresDatabase
from openbell.stores.records.sqlite import SqliteDatabase
from tests.stores.records.partner import Say
from tests.stores.records.places import Place

NOW = 1_760_000_000.0
SCOPES = frozenset({"read", "trade"})
GRANT = Grant("g1", "client", "local", SCOPES, "https://desk.example/mcp")
CODE = Code("c0de", GRANT, "https://app.example/cb", "challenge", NOW + 60)
OPERATOR = User("local", PassphraseHash(b"hash", b"salt", 2, 8, 1), frozenset({"read", "trade", "admin"}))
LIMITS = {"user": Limit(free=3, longest=60)}


def token(kind: str, digest: str, seconds: float = 900) -> Token:
    return Token(digest, kind, GRANT, SCOPES, GRANT.resource, NOW + seconds)


class AccessPlace(Place):
    """A folder, or a PostgreSQL database."""

    def database(self, pool: PoolLimits = PoolLimits()) -> Database:  # noqa: B008 - immutable
        if self.url:
            return PostgresDatabase(self.url, self.schema, pool, table=A_TABLE)
        return SqliteDatabase(self.folder / "access.sqlite", table=A_TABLE)

    @asynccontextmanager
    async def store(self, *, read_only: bool = False) -> AsyncIterator[AccessStore]:
        made = AccessStore(self.database(), read_only=read_only)
        try:
            yield made
        finally:
            await made.close()

    @asynccontextmanager
    async def filled(self) -> AsyncIterator[AccessStore]:
        """With the operator, a code, and its access and refresh tokens."""
        from openbell.stores.access import users

        async with self.store() as store:
            await store.write(lambda connection: users.put(connection, OPERATOR, NOW))
            await store.write(lambda connection: grants.create(connection, CODE, NOW))
            for each in (token(ACCESS, "acce55"), token(REFRESH, "refre5", 86_400)):
                await store.write(lambda connection, each=each: grants.add_token(connection, each))  # type: ignore[misc]
            yield store


async def use_code(say: Say, place: AccessPlace) -> None:
    async with place.store() as store:
        await store.key()
        say(await store.write(lambda connection: grants.use_code(connection, CODE.hash, NOW + 1)))


async def rotate(say: Say, place: AccessPlace) -> None:
    async with place.store() as store:
        await store.key()
        say(await store.write(lambda connection: grants.rotate(connection, "refre5", NOW + 1)))


async def use_form(say: Say, place: AccessPlace) -> None:
    async with place.store() as store:
        await store.key()
        say(await store.write(lambda connection: grants.use_form(connection, "n0nce", NOW + 60, NOW)))


async def guess(say: Say, place: AccessPlace) -> None:
    """Five guesses; sends how many were allowed."""
    async with place.store() as store:
        waits = [await store.write(lambda connection: users.begin_sign_in(connection, LIMITS, NOW)) for _ in range(5)]
    say(sum(wait == 0 for wait in waits))


async def key(say: Say, place: AccessPlace) -> None:
    async with place.store() as store:
        say(await store.key())


async def revoke(say: Say, place: AccessPlace) -> None:
    async with place.store() as store:
        await store.write(lambda connection: grants.revoke(connection, GRANT.id, NOW + 1))
    say("done")
