"""Restarts: a signal lets requests end, and clients that retry see no lost or doubled order, even after a kill."""

from __future__ import annotations

import http.client
import json
import select
import socket
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from tests.client import PATIENCE, run
from tests.gateway.services import free_port
from tests.gateway.streamable.gateways import Up, add_tokens, message
from tests.waiting import wait_for

WAITS = {"name": "get_notifications", "arguments": {"wait_s": 4, "cursor": 0}}
CLIENTS = 20
ORDERS = 8


def test_a_signal_lets_requests_end_and_closes_streams_cleanly(tmp_path: Path) -> None:
    with Up(tmp_path, TIMEOUT="30", MAX_REQUESTS_EACH="1") as up, ThreadPoolExecutor(1) as threads:
        stream, listening = up.stream(), up.listen("bob")
        answer = threads.submit(up.post, message("tools/call", WAITS))
        # One request at once: the next one is refused while it is in progress.
        wait_for(lambda: up.post(message("ping")).status == 429, "the request to be in progress")
        unread, stalled = unread_stream(up), stalled_client(up)
        began = time.monotonic()
        assert up.stop() == 0
        assert time.monotonic() - began < 15  # clients that do not read are not waited for
        assert answer.result(PATIENCE).json["result"]["structuredContent"]["notifications"] == []
        unread.close()
        stalled.close()
        assert stream.rest() == []  # raises if the response is not complete
        assert [sorted(each) for each in listening.rest()] == [["id", "jsonrpc", "result"]]
        stream.close()
        listening.close()
        assert "Traceback" not in up.log()
        assert '"outcome": "ok"' in (tmp_path / "audit.log").read_text()


def unread_stream(up: Up) -> socket.socket:
    """A stream of pushes that its client does not read."""
    connection = up.connect()
    connection.sendall(up.bytes_of("GET", "/mcp", None, "bob", Accept="text/event-stream"))
    return connection


def stalled_client(up: Up) -> socket.socket:
    """A client that sends requests and reads no response, until the gateway reads no more of its requests."""
    requests = up.bytes_of("POST", "/mcp", json.dumps(message("tools/list")).encode(), "bob") * 1000
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    connection.connect(("127.0.0.1", up.port))
    connection.setblocking(False)
    deadline = time.monotonic() + PATIENCE
    while select.select([], [connection], [], 1.0)[1]:
        with suppress(BlockingIOError):
            connection.send(requests)
        assert time.monotonic() < deadline
    return connection


class Trader:
    """A client that places orders and repeats each until it knows the outcome."""

    def __init__(self, number: int, port: int, token: str, price: float) -> None:
        self.number, self.port, self.token, self.price = number, port, token, price
        self.placed: dict[str, str] = {}
        """The order of each key, as the gateway has named it."""
        self.refusals: Counter[str] = Counter()
        self.lost_connections = 0
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)

    def trade(self, give_up: threading.Event) -> None:
        with closing(self._connection):
            for at in range(ORDERS):
                key = f"client{self.number}-{at}"
                while (order := self._place(key)) is None:
                    assert not give_up.wait(0.02)
                self.placed[key] = order

    def _place(self, key: str) -> str | None:
        """The name of the order; None if it must be asked again."""
        order = {"symbol": "BTC/USD", "side": "buy", "type": "limit", "quantity": "0.0001", "price": self.price}
        call = message("tools/call", {"name": "place_order", "arguments": {**order, "client_order_id": key}}, key)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        try:
            self._connection.request("POST", "/mcp", json.dumps(call), headers)
            response = self._connection.getresponse()
            body = json.loads(response.read())
        except (OSError, http.client.HTTPException):
            self.lost_connections += 1
            self._connection.close()  # the next request connects again
            return None
        if response.status != 200:
            assert response.getheader("retry-after"), (response.status, body)
            self.refusals[body["error"]["data"]["reason"]] += 1
            return None
        assert body["id"] == key
        assert body["result"]["isError"] is False, body
        found: str = body["result"]["structuredContent"]["order_id"]
        return found


def test_no_order_is_lost_or_doubled_by_restarts_under_load(tmp_path: Path) -> None:
    """The process is stopped by a signal and started again, and then killed and started again, while clients trade."""
    port, tokens = free_port(), add_tokens(tmp_path)

    def start() -> Up:
        return Up(tmp_path, tokens=tokens, port=port, RISK_POSITIONS="0", TIMEOUT="30")

    give_up = threading.Event()
    with ThreadPoolExecutor(CLIENTS) as threads:
        up = start()
        price = up.ask("get_current_price", path="/market-data/mcp", symbol="BTC/USD")["data"]["price"]
        traders = [
            Trader(number, port, tokens["bob" if number % 2 else "alice"], round(price * 0.96, 2))
            for number in range(CLIENTS)
        ]

        def placed() -> int:
            return sum(len(trader.placed) for trader in traders)

        running = [threads.submit(trader.trade, give_up) for trader in traders]
        try:
            wait_for(lambda: placed() >= 30, "some orders")
            with up:
                assert up.stop() == 0
                assert "Traceback" not in up.log()
            up = start()
            before = placed()
            wait_for(lambda: placed() >= before + 30, "more orders")
            up.process.kill()
            with up:
                up.process.wait(PATIENCE)
            up = start()
            for each in running:
                each.result(PATIENCE)
        finally:
            give_up.set()
        with up:
            orders = {who: up.ask("get_orders", who, limit=1000)["orders"] for who in ("alice", "bob")}
            assert up.stop() == 0
    assert sum(trader.lost_connections for trader in traders) > 0
    found: list[dict[str, Any]] = [order for each in orders.values() for order in each]
    by_key = Counter(order["client_order_id"] for order in found)
    assert by_key == Counter(f"client{number}-{at}" for number in range(CLIENTS) for at in range(ORDERS))
    names = {order["client_order_id"]: order["order_id"] for order in found}
    assert names == {key: name for trader in traders for key, name in trader.placed.items()}
    checked = run(tmp_path, "verify")
    assert checked.returncode == 0, checked.stdout + checked.stderr
