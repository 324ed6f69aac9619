"""InfluxDB's v1 HTTP API, as much of it as bars need: lines in, rows out, every failure a `StoreError`.

Values are bound, never put into a query's text. Times are ours: whole numbers, written as seconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openbell.market.errors import StoreError, StoreTimeout

if TYPE_CHECKING:
    import httpx2

FIELDS = ("open", "high", "low", "close", "volume")
BATCH = 5000
"""Lines in one write."""


@dataclass(frozen=True, slots=True)
class Pool:
    """How many connections there may be, and how long each step may take, in seconds."""

    connections: int = 5
    idle: float = 60.0
    connect: float = 3.0
    answer: float = 5.0


class InfluxHttp:
    """One database of one server. Any number of threads may use it."""

    def __init__(self, url: str, database: str, token: str = "", pool: Pool | None = None) -> None:
        import httpx2

        pool = pool or Pool()
        self.url, self.database = url.rstrip("/"), database
        user, colon, password = token.partition(":")
        self._client = httpx2.Client(
            base_url=self.url,
            auth=(user, password) if colon else None,
            headers={"Authorization": f"Token {token}"} if token and not colon else {},
            timeout=httpx2.Timeout(pool.answer, connect=pool.connect),
            limits=httpx2.Limits(
                max_connections=pool.connections,
                max_keepalive_connections=pool.connections,
                keepalive_expiry=pool.idle,
            ),
        )

    def close(self) -> None:
        """Close every connection."""
        self._client.close()

    # Writing

    def write(self, lines: Iterable[str]) -> None:
        """Store points, in batches; each is durable when its answer has come. Writing one again changes nothing."""
        batch: list[str] = []
        for line in lines:
            batch.append(line)
            if len(batch) == BATCH:
                self._write(batch)
                batch = []
        if batch:
            self._write(batch)

    def _write(self, lines: Sequence[str]) -> None:
        params = {"db": self.database, "precision": "s"}
        answer = self._send("POST", "/write", params=params, content="\n".join(lines).encode())
        if answer.status_code == 404:
            self.create()
            answer = self._send("POST", "/write", params=params, content="\n".join(lines).encode())
        # Whatever else answers 200 here, a proxy or a login page, has stored nothing.
        if answer.status_code != 204:
            raise self._refused(answer)

    def create(self) -> None:
        """Make the database; it is left alone if it is there. A year to a shard: bars are read over long stretches."""
        made = f'CREATE DATABASE "{self.database}" WITH DURATION INF REPLICATION 1 SHARD DURATION 52w NAME "autogen"'
        answer = self._send("POST", "/query", params={"q": made})
        if answer.status_code != 200 or b'"results"' not in answer.content[:200]:
            raise self._refused(answer)

    def exists(self) -> bool:
        """Whether the database is there."""
        return [self.database] in self.rows("SHOW DATABASES")

    def delete(self, measurements: Iterable[str], tags: dict[str, str], start: int, end: int) -> None:
        """Remove a series' points in [start, end). (DELETE takes no bound values: the tags are quoted.)"""
        chosen = " AND ".join(f'"{name}" = {_quoted(value)}' for name, value in tags.items())
        for measurement in measurements:
            self._ask(f'DELETE FROM "{measurement}" WHERE {chosen} AND time >= {start}s AND time < {end}s', {}, "POST")

    # Reading

    def rows(self, query: str, **bound: Any) -> list[list[Any]]:
        """The rows of the first series that a query gives; none if there is none."""
        found: list[list[Any]] = next(iter(self.series(query, **bound)), {}).get("values", [])
        return found

    def series(self, query: str, **bound: Any) -> list[dict[str, Any]]:
        """Every series that a query gives, as InfluxDB says it: name, tags, columns, values."""
        answer = self._ask(query, bound)
        try:
            result = json.loads(answer.content)["results"][0]
            if "error" in result:
                if "database not found" in result["error"]:
                    return []  # it is made by the first write
                raise StoreError(f"InfluxDB: {result['error']}")
            found: list[dict[str, Any]] = [dict(each) for each in result.get("series") or []]
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise StoreError(f"{self.url} answered what is no result of InfluxDB's: {error}") from error
        return found

    def table(self, query: str, **bound: Any) -> bytes:
        """The rows of a query as comma-separated values with a header; nothing if there are none."""
        content: bytes = self._ask(query, bound, accept="application/csv").content
        if b"database not found" in content[:300]:
            return b""
        if content.strip() and not content.startswith(b"name,tags,time,"):
            raise StoreError(f"{self.url} answered what is no table of InfluxDB's: {_shown(content)}")
        return content

    def version(self) -> str:
        """What the server calls itself; raises if it does not answer."""
        return str(self._send("GET", "/ping").headers.get("X-Influxdb-Version", "of unknown version"))

    def _ask(self, query: str, bound: dict[str, Any], method: str = "GET", accept: str = "") -> httpx2.Response:
        params = {"db": self.database, "epoch": "s", "q": query}
        if bound:
            params["params"] = json.dumps(bound)
        answer = self._send(method, "/query", params=params, headers={"Accept": accept} if accept else {})
        if answer.status_code != 200:
            raise self._refused(answer)
        return answer

    def _send(self, method: str, path: str, **rest: Any) -> httpx2.Response:
        import httpx2

        try:
            try:
                return self._client.request(method, path, **rest)
            except (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError):
                # A connection that was kept and has died meanwhile. Everything here may be said twice.
                return self._client.request(method, path, **rest)
        except httpx2.TimeoutException as error:
            raise StoreTimeout(f"InfluxDB at {self.url} does not answer in time ({type(error).__name__})") from None
        except httpx2.LocalProtocolError:
            # Its text would quote what it does not like, the token included.
            raise StoreError(
                f"InfluxDB at {self.url}: the request cannot be sent; check OPENBELL_INFLUX_TOKEN"
            ) from None
        except httpx2.HTTPError as error:
            raise StoreError(f"InfluxDB at {self.url} cannot be reached: {error}") from None
        except (httpx2.InvalidURL, ValueError):
            raise StoreError(
                f"{self.url!r} cannot be asked: check OPENBELL_INFLUX_URL and OPENBELL_INFLUX_TOKEN"
            ) from None

    def _refused(self, answer: httpx2.Response) -> StoreError:
        if answer.status_code in {401, 403}:
            return StoreError(f"InfluxDB at {self.url} refuses the token: check OPENBELL_INFLUX_TOKEN")
        try:
            reason = str(json.loads(answer.content)["error"])
        except (ValueError, KeyError, TypeError):
            reason = _shown(answer.content)
        return StoreError(f"InfluxDB at {self.url} answers {answer.status_code}: {reason}")


def _shown(content: bytes) -> str:
    """The beginning of an unexpected answer, in one line."""
    return " ".join(content[:120].decode(errors="replace").split())


def escaped(tag: str) -> str:
    """A tag's value in a line."""
    for character in ", =":
        tag = tag.replace(character, "\\" + character)
    return tag


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
