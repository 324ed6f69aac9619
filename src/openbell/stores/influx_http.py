"""The parts of InfluxDB's v1 HTTP API that bars need. Every failure raises `StoreError`.

Values are bound parameters, never part of a query's text; times are integers, in seconds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from openbell.market.clock import iso
from openbell.market.errors import StoreError, StoreTimeout, StoreUnreachable
from openbell.stores.network_causes import cause_of

if TYPE_CHECKING:
    import ssl

    import httpx2

FIELDS = ("open", "high", "low", "close", "volume")
_TRIAL = "openbell_doctor"
"""The measurement of a point that is removed again."""
BATCH = 5000
"""Lines in one request."""


class NotAllowed(StoreError):
    """InfluxDB knows the user, who lacks a right."""


@dataclass(frozen=True, slots=True)
class Pool:
    """The most connections, and timeouts in seconds."""

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
        self._failing_since: float | None = None
        user, colon, password = token.partition(":")
        self._client = httpx2.Client(
            base_url=self.url,
            auth=(user, password) if colon else None,
            # InfluxDB takes longer to compress a table than a local network takes to send it.
            headers={"Accept-Encoding": "identity"}
            | ({"Authorization": f"Token {token}"} if token and not colon else {}),
            verify=_tls(),
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
        """Store points in batches; each batch is durable when its request returns. Writing a point twice is harmless."""
        batch: list[str] = []
        for line in lines:
            batch.append(line)
            if len(batch) == BATCH:
                self._write(batch)
                batch = []
        if batch:
            self._write(batch)

    def write_now(self, line: str) -> None:
        """Store one point without a time: it gets the server's, in nanoseconds."""
        self._write([line], "ns")

    def _write(self, lines: Sequence[str], precision: str = "s") -> None:
        params = {"db": self.database, "precision": precision}
        answer = self._send("POST", "/write", params=params, content="\n".join(lines).encode())
        if answer.status_code == 404:
            self.create()
            answer = self._send("POST", "/write", params=params, content="\n".join(lines).encode())
        # A proxy or a login page answers 200 and has stored nothing.
        if answer.status_code != 204:
            raise self._error(answer)

    def try_write(self) -> None:
        """Write a point and remove it. Raises `StoreError` if one of both is refused."""
        self._write([f"{_TRIAL} tried=1i 0"])
        self._query(f'DELETE FROM "{_TRIAL}" WHERE time = 0s', {}, "POST")

    def create(self) -> None:
        """Create the database if it does not exist. A shard holds a year, because bars are read over long spans."""
        statement = (
            f'CREATE DATABASE "{self.database}" WITH DURATION INF REPLICATION 1 SHARD DURATION 52w NAME "autogen"'
        )
        answer = self._send("POST", "/query", params={"q": statement})
        if answer.status_code == 403:
            raise NotAllowed(
                f"InfluxDB at {self.url} has no database {self.database}, and this user may not create it: let an admin run "
                f"{statement}, and GRANT ALL ON it to this user"
            )
        if answer.status_code != 200 or b'"results"' not in answer.content[:200]:
            raise self._error(answer)

    def exists(self) -> bool:
        """Returns True if the database exists."""
        return [self.database] in self.rows("SHOW DATABASES")

    def delete(self, measurements: Iterable[str], tags: dict[str, str], start: int, end: int) -> None:
        """Delete the points of a series in [start, end). DELETE has no bound parameters, so the tags are quoted."""
        chosen = " AND ".join(f'"{name}" = {_quoted(value)}' for name, value in tags.items())
        for measurement in measurements:
            self._query(
                f'DELETE FROM "{measurement}" WHERE {chosen} AND time >= {start}s AND time < {end}s', {}, "POST"
            )

    def delete_older(self, measurement: str, age: str) -> None:
        """Delete the points of a measurement that are older than `age` of the server's time, such as `1d`."""
        self._query(f'DELETE FROM "{measurement}" WHERE time < now() - {age}', {}, "POST")

    # Reading

    def rows(self, query: str, **bound: Any) -> list[list[Any]]:
        """The rows of the first series in a query's result; empty if there is none."""
        found: list[list[Any]] = next(iter(self.series(query, **bound)), {}).get("values", [])
        return found

    def series(self, query: str, **bound: Any) -> list[dict[str, Any]]:
        """Every series in a query's result, with InfluxDB's own keys: name, tags, columns, values."""
        answer = self._query(query, bound)
        try:
            result = json.loads(answer.content)["results"][0]
            if "error" in result:
                if "database not found" in result["error"]:
                    return []  # the first write creates it
                raise StoreError(f"InfluxDB: {result['error']}")
            found: list[dict[str, Any]] = [dict(each) for each in result.get("series") or []]
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise StoreError(f"{self.url} did not answer like InfluxDB: {_shown(answer.content)}") from error
        return found

    def table(self, query: str, **bound: Any) -> bytes:
        """The rows of a query as CSV with a header; empty if there are none."""
        content: bytes = self._query(query, bound, accept="application/csv").content
        if b"database not found" in content[:300]:
            return b""
        if content.strip() and not content.startswith(b"name,tags,time,"):
            raise StoreError(f"{self.url} did not answer like InfluxDB: {_shown(content)}")
        return content

    def version(self) -> str:
        """The server's version. Raises `StoreError` if the server does not answer."""
        return str(self._send("GET", "/ping").headers.get("X-Influxdb-Version", "of unknown version"))

    def _query(self, query: str, bound: dict[str, Any], method: str = "GET", accept: str = "") -> httpx2.Response:
        params = {"db": self.database, "epoch": "s", "q": query}
        if bound:
            params["params"] = json.dumps(bound)
        answer = self._send(method, "/query", params=params, headers={"Accept": accept} if accept else {})
        if answer.status_code != 200:
            raise self._error(answer)
        return answer

    def _send(self, method: str, path: str, **rest: Any) -> httpx2.Response:
        import httpx2

        try:
            try:
                answer = self._client.request(method, path, **rest)
            except (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError):
                # The server has closed an idle connection. Every request may be sent twice.
                answer = self._client.request(method, path, **rest)
        except httpx2.TimeoutException:
            raise StoreTimeout(f"InfluxDB at {self.url} did not answer in time{self._since()}") from None
        except httpx2.LocalProtocolError:
            # The error's text would quote the invalid header, which may be the token.
            raise StoreError(
                f"InfluxDB at {self.url}: the request cannot be sent; check OPENBELL_INFLUX_TOKEN"
            ) from None
        except httpx2.HTTPError as error:
            raise StoreUnreachable(
                f"InfluxDB at {self.url} cannot be reached: {cause_of(error)}{self._since()}"
            ) from None
        except (httpx2.InvalidURL, ValueError):
            raise StoreError(
                f"{self.url!r} is not a valid address: check OPENBELL_INFLUX_URL and OPENBELL_INFLUX_TOKEN"
            ) from None
        self._failing_since = None
        return answer

    def _since(self) -> str:
        """Note that the server does not answer; returns since when, for messages."""
        self._failing_since = self._failing_since or time.time()
        return f" (since {iso(int(self._failing_since))})"

    def _error(self, answer: httpx2.Response) -> StoreError:
        if answer.status_code == 401:
            return StoreError(f"InfluxDB at {self.url} refused the token: check OPENBELL_INFLUX_TOKEN")
        try:
            reason = str(json.loads(answer.content)["error"])
        except (ValueError, KeyError, TypeError):
            reason = _shown(answer.content)
        if answer.status_code == 403:
            return NotAllowed(
                f"InfluxDB at {self.url} refused the token for this: {reason}. Grant its user all rights on the database "
                f"{self.database}, or check OPENBELL_INFLUX_TOKEN"
            )
        return StoreError(f"InfluxDB at {self.url} answered {answer.status_code}: {reason}")


@cache
def _tls() -> ssl.SSLContext:
    """Returns the settings for https of all stores in this process. Loading the certificates takes 20 ms."""
    from httpx2 import create_ssl_context

    return create_ssl_context()


def _shown(content: bytes) -> str:
    """The start of an unexpected answer, on one line."""
    return " ".join(content[:120].decode(errors="replace").split())


def escaped(tag: str) -> str:
    """A tag's value, escaped for the line protocol."""
    for character in ", =":
        tag = tag.replace(character, "\\" + character)
    return tag


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
