"""The parts of InfluxDB's v1 HTTP API that bars need. Every failure raises `StoreError`.

Values are bound parameters, never part of a query's text; times are integers, in seconds.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from openbell.market.clock import iso
from openbell.market.errors import StoreError, StoreTimeout, StoreUnreachable
from openbell.net.http import BlockingClient, HttpFailed, HttpFault, RequestBounds
from openbell.net.response import Response
from openbell.stores import call_outages
from openbell.stores.failure_causes import cause_of

FIELDS = ("open", "high", "low", "close", "volume")
_TRIAL = "openbell_doctor"
"""The measurement of a point that is removed again."""
BATCH = 5000
"""Lines in one request."""
_LARGEST = 2**30
"""Bytes of an answer. A year of minutes has about 30 million."""
_LONGEST = 60.0
"""Seconds of an answer that keeps arriving. Each of its parts must come within the time-out of the pool."""


class NotAllowed(StoreError):
    """InfluxDB knows the user, who lacks a right."""


def pool_bounds(connections: int = 5, idle: float = 60.0, connect: float = 3.0, answer: float = 5.0) -> RequestBounds:
    """The bounds of requests, with the most connections; all times are seconds."""
    return RequestBounds(connect + max(answer, _LONGEST), answer, connect, _LARGEST, connections, idle)


class InfluxHttp:
    """One database of one server. Any number of threads may use it."""

    def __init__(self, url: str, database: str, token: str = "", bounds: RequestBounds | None = None) -> None:
        self._bounds = bounds or pool_bounds()
        self.url, self.database = url.rstrip("/"), database
        self._failing_since: float | None = None
        self._answers = False
        """True once the server has answered, until a request fails."""
        self._client = BlockingClient(self.url, _credentials(token), self._bounds)

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
        answer = self._send("POST", "/write", params=params, body="\n".join(lines).encode())
        if answer.status == 404:
            self.create()
            answer = self._send("POST", "/write", params=params, body="\n".join(lines).encode())
        # A proxy or a login page answers 200 and has stored nothing.
        if answer.status != 204:
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
        if answer.status == 403:
            raise NotAllowed(
                f"InfluxDB at {self.url} has no database {self.database}, and this user may not create it: let an admin run "
                f"{statement}, and GRANT ALL ON it to this user"
            )
        if answer.status != 200 or b'"results"' not in answer.body[:200]:
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
            result = json.loads(answer.body)["results"][0]
            if "error" in result:
                if "database not found" in result["error"]:
                    return []  # the first write creates it
                raise StoreError(f"InfluxDB: {result['error']}")
            found: list[dict[str, Any]] = [dict(each) for each in result.get("series") or []]
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise StoreError(f"{self.url} did not answer like InfluxDB: {_shown(answer.body)}") from error
        return found

    def table(self, query: str, **bound: Any) -> bytes:
        """The rows of a query as CSV with a header; empty if there are none."""
        content = self._query(query, bound, accept="application/csv").body
        if b"database not found" in content[:300]:
            return b""
        if content.strip() and not content.startswith(b"name,tags,time,"):
            raise StoreError(f"{self.url} did not answer like InfluxDB: {_shown(content)}")
        return content

    def version(self) -> str:
        """The server's version. Raises `StoreError` if the server does not answer."""
        return str(self._send("GET", "/ping").headers.get("x-influxdb-version", "of unknown version"))

    def _query(self, query: str, bound: dict[str, Any], method: str = "GET", accept: str = "") -> Response:
        params = {"db": self.database, "epoch": "s", "q": query}
        if bound:
            params["params"] = json.dumps(bound)
        answer = self._send(method, "/query", params=params, headers={"Accept": accept} if accept else {})
        if answer.status != 200:
            raise self._error(answer)
        return answer

    def _send(self, method: str, path: str, **rest: Any) -> Response:
        call_outages.raise_known(self.url)
        try:
            if not self._answers:
                # A server that accepts connections and never answers is found out in the time of a connection.
                bounds = self._bounds
                part = min(bounds.connect, bounds.part or bounds.connect)
                self._client.send("GET", "/ping", bounds=replace(bounds, part=part))
                self._answers = True
            try:
                answer = self._client.send(method, path, **rest)
            except HttpFailed as error:
                if error.fault is not HttpFault.CUT:
                    raise
                # The server has closed an idle connection. Every request may be sent twice.
                answer = self._client.send(method, path, **rest)
        except HttpFailed as error:
            raise self._failure(error) from None
        self._failing_since = None
        return answer

    def _failure(self, error: HttpFailed) -> StoreError:
        if error.fault is HttpFault.LATE:
            answered = self._answers
            late = StoreTimeout(f"InfluxDB at {self.url} did not answer in time{self._since()}")
            # A slow query is no outage: the same call may ask for something else.
            return late if answered and error.sent else call_outages.note(self.url, late)
        if error.fault is HttpFault.INVALID:
            # The library's text would quote an invalid header, which may be the token.
            return StoreError(
                f"InfluxDB at {self.url}: the request cannot be sent; check OPENBELL_INFLUX_URL and OPENBELL_INFLUX_TOKEN"
            )
        if error.fault is HttpFault.CLOSED:
            return StoreError("the connections to InfluxDB were closed")
        if error.fault in {HttpFault.LARGE_HEAD, HttpFault.LARGE_BODY}:
            return StoreError(f"InfluxDB at {self.url}: {error.fault.value}")
        return StoreUnreachable(f"InfluxDB at {self.url} cannot be reached: {cause_of(error)}{self._since()}")

    def _since(self) -> str:
        """Note that the server does not answer; returns since when, for messages."""
        self._answers = False
        self._failing_since = self._failing_since or time.time()
        return f" (since {iso(int(self._failing_since))})"

    def _error(self, answer: Response) -> StoreError:
        if answer.status == 401:
            return StoreError(f"InfluxDB at {self.url} refused the token: check OPENBELL_INFLUX_TOKEN")
        try:
            reason = str(json.loads(answer.body)["error"])
        except (ValueError, KeyError, TypeError):
            reason = _shown(answer.body)
        if answer.status == 403:
            return NotAllowed(
                f"InfluxDB at {self.url} refused the token for this: {reason}. Grant its user all rights on the database "
                f"{self.database}, or check OPENBELL_INFLUX_TOKEN"
            )
        return StoreError(f"InfluxDB at {self.url} answered {answer.status}: {reason}")


def _credentials(token: str) -> dict[str, str]:
    """Returns the header of a token, or of user:password."""
    if ":" in token:
        return {"Authorization": f"Basic {base64.b64encode(token.encode()).decode()}"}
    return {"Authorization": f"Token {token}"} if token else {}


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


def shard_bytes(http: InfluxHttp) -> int | None:
    """The bytes of a database's shards; None if the user may not read them, which needs rights of an admin."""
    try:
        found = http.series("SHOW STATS FOR 'shard'")
    except NotAllowed:
        return None
    shards = [each for each in found if (each.get("tags") or {}).get("database") == http.database]
    sizes = (dict(zip(each["columns"], each["values"][0], strict=True)).get("diskBytes") for each in shards)
    return sum(int(size or 0) for size in sizes)


def size_of(path: Path) -> int:
    """The bytes of a file; 0 if there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
