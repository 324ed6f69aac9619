"""A local server with Alpaca's trading API: an account with orders, legs, fills and activities, and planned faults.

It runs in a thread of its own. A test moves the market (`fill`, `cancel_all`, `replace`) and plans faults for the next
requests of a kind (`suffer`).
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from email.utils import formatdate
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit
from uuid import NAMESPACE_URL, uuid5

from tests.looped import LoopServer

KEY, SECRET = "PKTRADEKEY0123456789", "tr4de/s3cr3t+that=nobody.sees"
NOW = 1_790_000_000
ENDED = frozenset({"filled", "canceled", "expired", "rejected", "replaced"})
UNTAKEN = ("drop", "500", "503")
"""Faults after which the order is not in the book."""
TAKEN = ("take and drop", "take and 504", "take and be late", "take and garbage", "take and half", "take and no id",
         "take and list", "take and other id", "take and flood", "take and redirect")  # fmt: skip
"""Faults after which the order is in the book although the client got no clear answer."""

Json = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """A planned answer."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    half: bool = False


class Seen(NamedTuple):
    """A request that arrived."""

    kind: str
    path: str
    params: dict[str, str]
    headers: dict[str, str]
    body: bytes


def answer(status: int, body: object, **headers: str) -> Answer:
    """JSON with a status and headers (`retry_after="1"`)."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, json.dumps(body).encode(), named)


def refusal(status: int, code: int, message: str) -> Answer:
    """A refusal in Alpaca's form."""
    return answer(status, {"code": code, "message": message})


class AlpacaTradingServer(LoopServer):
    """Start it with `with`; give its `url` to the broker."""

    def __init__(self) -> None:
        super().__init__()
        self.orders: dict[str, Json] = {}
        """Orders by Alpaca's id, including legs."""
        self.activities: list[Json] = []
        self.hidden: list[Json] = []
        """Fills that are counted in orders but not listed in the activities yet."""
        self.requests: list[Seen] = []
        self.page = 100
        self.overlap = 0
        """How many rows of a page the next page repeats."""
        self.filters = True
        """True if `order_id` filters activities."""
        self.tells_legs = False
        """True if the request by client_order_id returns legs."""
        self.slow_cancel = False
        """True if cancellations stay pending until `cancel_all`."""
        self.coin_fee = Decimal(0)
        """The share of bought coins that is kept as a fee."""
        self.coins: dict[str, Decimal] = defaultdict(Decimal)
        """The coins that the account has."""
        self.buying_power = Decimal(1_000_000)
        self.account: Any = {"equity": "100000.12345678", "cash": "-12.5", "buying_power": "1000000"}
        self.on_fills: Callable[[], None] = lambda: None
        """Called just before activities are returned."""
        self._faults: dict[str, deque[Answer | str]] = defaultdict(deque)
        self._lock = threading.RLock()
        self._made = 0
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def suffer(self, kind: str, *faults: Answer | str) -> None:
        """Plan faults for requests of a kind: `submit`, `cancel`, `by id`, `order`, `fills`, `account` or `connect`."""
        self._faults[kind].extend(faults)

    def count(self, kind: str) -> int:
        """How many requests of a kind have arrived."""
        return sum(seen.kind == kind for seen in self.requests)

    def roots(self) -> list[Json]:
        """The orders that were posted."""
        return [each for each in self.orders.values() if each["parent"] is None and each["replaces"] is None]

    def of(self, name: str) -> Json:
        """An order by Alpaca's id or by the client's."""
        return self.orders.get(name) or next(o for o in self.orders.values() if o["client_order_id"] == name)

    def leg(self, name: str, kind: str) -> Json:
        """The leg of a type (`limit`, `stop`) of an order."""
        return next(each for each in self._legs(self.of(name)) if each["type"] == kind)

    # --- the market

    def fill(self, name: str, quantity: str, price: str = "100", *, told: bool = True, at: float = NOW + 1) -> str:
        """Fill a part of an order; `told`: the activities list it at once."""
        with self._lock:
            order = self.of(name)
            order["filled_qty"] = _text(Decimal(order["filled_qty"]) + Decimal(quantity))
            done = Decimal(order["filled_qty"]) >= Decimal(order["qty"])
            order["status"] = "filled" if done else "partially_filled"
            number = len(self.activities) + len(self.hidden)
            moment = datetime.fromtimestamp(at, UTC)
            row = {
                "id": f"{moment:%Y%m%d%H%M%S}{number:03}::{uuid5(NAMESPACE_URL, f'fill {number}')}",
                "activity_type": "FILL",
                "transaction_time": moment.isoformat(timespec="microseconds").replace("+00:00", "123Z"),
                "type": "fill" if done else "partial_fill",
                "price": price,
                "qty": quantity,
                "side": order["side"],
                "symbol": order["symbol"],
                "leaves_qty": "0",
                "order_id": order["id"],
                "cum_qty": order["filled_qty"],
                "order_status": order["status"],
            }
            (self.activities if told else self.hidden).append(row)
            if "/" in order["symbol"]:
                bought = order["side"] == "buy"
                self.coins[order["symbol"]] += Decimal(quantity) * (1 - self.coin_fee if bought else -1)
            if done:
                self._after(order)
            return str(row["id"])

    def _after(self, order: Json) -> None:
        """A filled entry activates its legs, one of them at the exchange; a filled leg ends the other."""
        legs = self._legs(order)
        for each in legs:
            each["status"] = "held" if each["type"] == "stop" and len(legs) > 1 else "new"
        if order["parent"]:
            for each in self._legs(self.orders[order["parent"]]):
                if each["status"] not in ENDED:
                    each["status"] = "canceled"

    def catch_up(self, count: int | None = None) -> None:
        """List the oldest unlisted fills in the activities, or all."""
        with self._lock:
            count = len(self.hidden) if count is None else count
            self.activities += self.hidden[:count]
            del self.hidden[:count]

    def set(self, name: str, **fields: Any) -> None:
        self.of(name).update(fields)

    def cancel_all(self) -> None:
        """Finish pending cancellations."""
        for order in self.orders.values():
            if order["status"] == "pending_cancel":
                order["status"] = "canceled"

    def replace(self, name: str, **fields: Any) -> Json:
        """Replace an order by another one."""
        with self._lock:
            old = self.of(name)
            new = self._make({**old, "filled_qty": "0", "client_order_id": f"replacement {self._made}", **fields})
            new["replaces"], old["replaced_by"], old["status"] = old["id"], new["id"], "replaced"
            new["parent"] = old["parent"]
            return new

    def drop_idle(self) -> None:
        """Close every open connection, and return when that is done."""
        done = threading.Event()

        def close() -> None:
            for writer in self._writers:
                writer.transport.abort()
            self._loop.call_later(0.01, done.set)

        self._loop.call_soon_threadsafe(close)
        assert done.wait(10)

    # --- HTTP

    async def _listen(self) -> None:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._faults["connect"]:
            self._faults["connect"].popleft()
            writer.transport.abort()
            return
        self._writers.add(writer)
        try:
            while head := await _head(reader):
                seen = await _request(head, reader)
                self.requests.append(seen)
                if not await self._respond(seen, writer):
                    break
        except (ConnectionError, asyncio.CancelledError, asyncio.IncompleteReadError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _respond(self, seen: Seen, writer: asyncio.StreamWriter) -> bool:
        """Answer a request. Returns True if the connection stays open."""
        fault = self._faults[seen.kind].popleft() if self._faults[seen.kind] else None
        if isinstance(fault, Answer):
            return await _write(writer, fault)
        if fault == "drop":
            return False
        if fault in {"500", "503"}:
            return await _write(writer, Answer(int(fault), b"<html>upstream</html>"))
        if fault == "late":
            await self._stop.wait()
        if fault == "trickle":
            writer.write(b"HTTP/1.1 200 X\r\nContent-Length: 100000\r\n\r\n")
            while not self._stop.is_set():
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.02)
        with self._lock:
            said = self._answer(seen)
        if fault is None:
            return await _write(writer, said)
        return await self._after_taking(fault, said, writer)

    async def _after_taking(self, fault: str, said: Answer, writer: asyncio.StreamWriter) -> bool:
        assert fault.startswith("take and ")
        told = json.loads(said.body) if said.body else None
        instead = {
            "504": Answer(504, b"gateway time-out"),
            "garbage": Answer(200, b'{"id": '),
            "half": Answer(said.status, said.body, half=True),
            "no id": answer(200, {k: v for k, v in (told or {}).items() if k != "id"}),
            "list": answer(200, [told]),
            "other id": answer(200, {**(told or {}), "client_order_id": "somebody else's"}),
            "flood": Answer(200, said.body + b" " * 5_000_000),
            "redirect": Answer(307, b"", {"Location": f"{self.url}/v2/elsewhere"}),
        }
        wanted = fault.removeprefix("take and ")
        if wanted == "be late":
            await self._stop.wait()
        if wanted in {"drop", "be late"}:
            return False
        return await _write(writer, instead[wanted])

    # --- the API

    def _answer(self, seen: Seen) -> Answer:
        if (seen.headers.get("apca-api-key-id"), seen.headers.get("apca-api-secret-key")) != (KEY, SECRET):
            return answer(401, {"code": 40110000, "message": "request is not authorized"})
        if seen.kind == "submit":
            return self._post(seen)
        if seen.kind == "fills":
            self.on_fills()
            return self._fills(seen.params)
        if seen.kind == "account":
            return answer(200, self.account)
        if seen.kind == "by id":
            wanted = seen.params["client_order_id"]
            found = next((o for o in self.orders.values() if o["client_order_id"] == wanted), None)
            legs = self.tells_legs
        elif seen.kind == "position":
            return self._position(seen.path.rpartition("/")[2])
        elif seen.kind in {"order", "cancel"}:
            found = self.orders.get(seen.path.rpartition("/")[2])
            legs = seen.params.get("nested") == "true"
        else:
            return refusal(404, 40410000, "endpoint not found")
        if found is None:
            return refusal(404, 40410000, "order not found")
        return self._cancel(found) if seen.kind == "cancel" else answer(200, self._shown(found, legs=legs))

    def _position(self, name: str) -> Answer:
        held = {symbol.replace("/", ""): count for symbol, count in self.coins.items() if count}
        if name not in held:
            return refusal(404, 40410000, "position does not exist")
        return answer(200, {"symbol": name, "qty": _text(held[name]), "qty_available": _text(held[name])})

    def _post(self, seen: Seen) -> Answer:
        assert seen.headers["content-type"] == "application/json"
        body: Json = json.loads(seen.body)
        profit, loss = body.get("take_profit"), body.get("stop_loss")
        numbers = [body.get("qty"), body.get("limit_price"), body.get("stop_price")]
        numbers += [*(profit or {}).values(), *(loss or {}).values()]
        if not all(isinstance(each, str | None) for each in numbers):
            return refusal(400, 40010000, "request body format is invalid")
        if any(body["client_order_id"] == order["client_order_id"] for order in self.orders.values()):
            return refusal(422, 40010001, "client_order_id must be unique")
        if len(body["client_order_id"]) > 128 or body["extended_hours"] is not False:
            return refusal(422, 40010001, "client_order_id must be no more than 128 characters")
        if bool(profit) + bool(loss) != {"bracket": 2, "oto": 1, None: 0}[body.get("order_class")]:
            return refusal(422, 40010001, "bracket orders require take_profit.limit_price")
        if "/" in body["symbol"] and (body["time_in_force"] not in {"gtc", "ioc"} or body.get("order_class")):
            return refusal(422, 42210000, "invalid crypto time_in_force")
        if Decimal(body["qty"]) * Decimal(body.get("limit_price") or 1) > self.buying_power:
            return refusal(403, 40310000, "insufficient buying power")
        if "/" in body["symbol"] and body["side"] == "sell" and Decimal(body["qty"]) > self.coins[body["symbol"]]:
            return refusal(403, 40310000, "insufficient balance")
        order = self._make(body)
        for kind, part in (("limit", profit), ("stop", loss)):
            if part:
                side = "sell" if body["side"] == "buy" else "buy"
                leg = {**body, "client_order_id": f"leg {self._made}", "type": kind, "side": side}
                leg |= {"limit_price": part.get("limit_price"), "stop_price": part.get("stop_price")}
                self._make(leg, status="held", parent=order["id"])
        return answer(200, self._shown(order, legs=True))

    def _make(self, body: Mapping[str, Any], status: str = "accepted", parent: str | None = None) -> Json:
        self._made += 1
        order = {
            "id": str(uuid5(NAMESPACE_URL, f"order {self._made}")),
            "client_order_id": body["client_order_id"],
            "symbol": body["symbol"],
            "qty": body["qty"],
            "filled_qty": body.get("filled_qty", "0"),
            "side": body["side"],
            "type": body["type"],
            "time_in_force": body["time_in_force"],
            "limit_price": body.get("limit_price"),
            "stop_price": body.get("stop_price"),
            "order_class": body.get("order_class", ""),
            "status": status,
            "replaced_by": None,
            "replaces": None,
            "parent": parent,
        }
        self.orders[order["id"]] = order
        return order

    def _legs(self, order: Json) -> list[Json]:
        return [each for each in self.orders.values() if each["parent"] == order["id"] and each["replaces"] is None]

    def _shown(self, order: Json, *, legs: bool) -> Json:
        shown = {name: value for name, value in order.items() if name != "parent"}
        family = [self._shown(each, legs=False) for each in self._legs(order)] if legs else []
        return {**shown, "legs": family or None}

    def _cancel(self, order: Json) -> Answer:
        if order["status"] in ENDED | {"pending_cancel", "pending_replace"}:
            return refusal(422, 42210000, f'order is already in "{order["status"]}" state')
        for each in [order, *self._legs(order)]:
            if each["status"] not in ENDED:
                each["status"] = "pending_cancel" if self.slow_cancel else "canceled"
        return Answer(204, b"")

    def _fills(self, params: Mapping[str, str]) -> Answer:
        assert params["direction"] == "asc"
        after = datetime.fromisoformat(params["after"])
        rows = [row for row in self.activities if datetime.fromisoformat(row["transaction_time"]) > after]
        if self.filters:
            rows = [row for row in rows if row["order_id"] == params["order_id"]]
        ids = [row["id"] for row in rows]
        start = ids.index(params["page_token"]) + 1 if "page_token" in params else 0
        if start < len(rows):
            start = max(0, start - self.overlap)
        return answer(200, rows[start : start + min(self.page, int(params["page_size"]))])


def _kind(method: str, path: str) -> str:
    if path == "/v2/orders" and method == "POST":
        return "submit"
    if path == "/v2/orders:by_client_order_id":
        return "by id"
    if path.startswith("/v2/orders/"):
        return "cancel" if method == "DELETE" else "order"
    if path.startswith("/v2/positions/"):
        return "position"
    return {"/v2/account/activities/FILL": "fills", "/v2/account": "account"}.get(path, path)


async def _head(reader: asyncio.StreamReader) -> str:
    try:
        return (await reader.readuntil(b"\r\n\r\n")).decode().strip()
    except asyncio.IncompleteReadError:
        return ""


async def _request(head: str, reader: asyncio.StreamReader) -> Seen:
    lines = head.split("\r\n")
    method, target, _ = lines[0].split()
    url = urlsplit(target)
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    params = {name: values[0] for name, values in parse_qs(url.query).items()}
    path = unquote(url.path)
    return Seen(_kind(method, path), path, params, headers, body)


async def _write(writer: asyncio.StreamWriter, said: Answer) -> bool:
    fields = {"Date": formatdate(NOW, usegmt=True), **dict(said.headers)}
    if said.status != 204:
        fields["Content-Length"] = str(len(said.body))
    text = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    body = said.body[: len(said.body) // 2] if said.half else said.body
    writer.write(f"HTTP/1.1 {said.status} X\r\n{text}\r\n".encode() + body)
    await writer.drain()
    return not said.half


def _text(value: Decimal) -> str:
    return f"{value:f}"
