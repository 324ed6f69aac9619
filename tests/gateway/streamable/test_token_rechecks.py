"""Streams end with the right to have them, and change nothing for clients that have not signed in."""

from __future__ import annotations

import asyncio
import http.client
import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from openbell.desk.settings.access import make_access
from openbell.gateway.admission import Admission, TokenCheck
from openbell.gateway.oauth.secret_texts import STATIC, digest, new_secret
from openbell.market.errors import StoreError
from openbell.protocol.session import Principal, Scope
from openbell.stores.access import static_tokens
from openbell.stores.access.static_tokens import StaticToken
from tests.client import PATIENCE
from tests.gateway.streamable.gateways import TOKENS, Inside, Up, message
from tests.gateway.webhooks.desks import fire
from tests.servers.test_alerts import AS_OF, CONDITIONS

PATH = "/chart-signals/mcp"
GIVEN: dict[str, Any] = {"symbol": "BTCUSD", "timeframe": "1min", "conditions": CONDITIONS}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inside]:
    extra = {name: (name.partition("-")[0], "read,trade") for name in ("ann", "ann-lost", "ann-listens", "ben", "cleo")}
    with Inside(
        tmp_path_factory.mktemp("permits"), {**TOKENS, **extra}, CHART_SIGNALS_HTTP="1", OPEN_READING="1"
    ) as made:
        yield made


def in_store(gateway: Inside, work: Any) -> None:
    """Change the tokens as another process does."""

    async def change() -> None:
        store = make_access(gateway.settings)
        try:
            await store.write(work)
        finally:
            await store.close()

    asyncio.run(change())


def test_the_streams_of_a_removed_token_end_within_a_second_or_two(gateway: Inside) -> None:
    """Those of other tokens of the same user go on."""
    gateway.ask("subscribe_notifications", "ann")
    with gateway.stream("ann") as kept, gateway.stream("ann-lost") as lost, gateway.listen("ann-listens") as listens:
        for name in ("ann-lost", "ann-listens"):
            in_store(gateway, partial(_remove, name))
        began = time.monotonic()
        assert lost.rest() == []
        assert [each.get("method") for each in listens.rest()] == [None]  # the result of subscriptions/listen
        assert time.monotonic() - began < 10
        alert = gateway.run(lambda: fire(gateway.desk, principal="ann"))["alert_id"]
        assert kept.message()["params"]["alert_id"] == alert


def _remove(name: str, connection: Any) -> None:
    assert static_tokens.remove(connection, name)


def test_the_stream_of_an_expired_token_ends(gateway: Inside) -> None:
    secret = new_secret(STATIC)
    token = StaticToken("short", "ann", frozenset({"read"}), digest(secret), 1.0, time.time() + 1.5)
    in_store(gateway, lambda connection: static_tokens.add(connection, token))
    gateway.tokens["short"] = secret
    with gateway.stream("short") as stream:
        assert stream.status == 200
        assert stream.rest() == []


def test_a_stream_lives_while_its_token_cannot_be_checked() -> None:
    class Down:
        async def principal(self, _token: str, _resource: str) -> Principal | None:
            raise StoreError("no connection")

    alice = Principal("alice", frozenset(Scope))
    scope = {"headers": [(b"authorization", b"Bearer abc"), (b"host", b"localhost")]}
    admission = Admission(Down(), lambda *_: "Bearer")
    refused: Any = asyncio.run(admission.admit(scope, "http://x/mcp"))
    assert (refused.status, refused.reason, refused.seconds) == (503, "unavailable", 5)
    assert asyncio.run(TokenCheck(admission, scope, "http://x/mcp", alice).holds()) is True


def test_clients_without_a_token_cannot_subscribe_as_the_operator(gateway: Inside) -> None:
    """Open reading reads as the operator; a subscription is stored, and another one can be ended."""
    for tool, given in (("subscribe_alerts", GIVEN), ("unsubscribe_alerts", {"subscription_id": "sub_1"})):
        for body in (message("tools/call", {"name": tool, "arguments": given}), message(tool, given)):
            refused = gateway.post(body, None, PATH)
            assert refused.status == 401, refused.body
            assert "needs a token" in refused.json["error"]["message"]
    assert gateway.post(message("tools/call", {"name": "get_capabilities"}), None, PATH).status == 200


def test_an_event_id_of_another_ledger_begins_a_new_stream(gateway: Inside) -> None:
    """A scenario that was reset, or another store: the numbers begin again."""
    gateway.ask("subscribe_notifications", "ben")
    with gateway.stream("ben") as stream:
        first = gateway.run(lambda: fire(gateway.desk, principal="ben"))["alert_id"]
        event = stream.event()
        assert json.loads(event["data"])["params"]["alert_id"] == first
    number, _, ledger = event["id"].partition("-")
    assert len(ledger) == 8
    for strange in (f"{number}-00000000", f"999999999-{ledger}", number, "-", f"{number}-{ledger}-1"):
        with gateway.stream("ben", Last_Event_ID=strange) as stream:
            alert = gateway.run(lambda: fire(gateway.desk, principal="ben"))["alert_id"]
            while (found := stream.message()["params"]["alert_id"]) != alert:
                assert found == first  # it may come again until it is recorded as pushed


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
def test_a_client_that_vanishes_while_it_waits_loses_no_notification(gateway: Inside, version: str) -> None:
    session = f"s-{version}"
    arguments = {"name": "get_notifications", "arguments": {"wait_s": 8}}
    headers = {"Mcp-Session-Id": session, "MCP-Protocol-Version": version, "Accept": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=PATIENCE)
    named = {"Authorization": f"Bearer {gateway.tokens['cleo']}", "Content-Type": "application/json", **headers}
    gateway.ask("get_notifications", "cleo")
    connection.request("POST", "/mcp", json.dumps(message("tools/call", arguments)), named)
    wait_until_listening(gateway)
    connection.close()
    gateway.run(lambda: asyncio.sleep(0.3))  # the server sees the end of the connection
    alert = gateway.run(lambda: fire(gateway.desk, principal="cleo"))["alert_id"]
    found = gateway.post(
        message("tools/call", {"name": "get_notifications", "arguments": {"wait_s": 5}}), "cleo", Mcp_Session_Id=session
    ).json["result"]["structuredContent"]["notifications"]
    assert [each["alert_id"] for each in found] == [alert]


def wait_until_listening(gateway: Inside) -> None:
    """Wait until the call has reached its wait for notifications."""
    deadline = time.monotonic() + PATIENCE
    while not gateway.run(lambda: gateway.gateway._watch._slots.total):
        assert time.monotonic() < deadline, "the call has not arrived"
    gateway.run(lambda: asyncio.sleep(0.2))


def test_a_desk_that_stores_nothing_has_one_subscription_for_the_same_arguments(tmp_path: Path) -> None:
    with Up(tmp_path, "--host", "127.0.0.1", AS_OF=AS_OF, CHART_SIGNALS_HTTP="1") as desk:
        made = [desk.ask("subscribe_alerts", "reader", PATH, **GIVEN)["subscription_id"] for _ in range(3)]
        assert len(set(made)) == 1
        other = desk.ask("subscribe_alerts", "bob", PATH, **GIVEN)["subscription_id"]
        assert other == made[0] == "sub_1", "ids show nothing about others"


def test_the_scopes_write_and_trade_both_store(gateway: Inside) -> None:
    decision = {"symbol": "AAPL", "action": "BUY", "confidence": 0.5, "reasoning": "because"}
    for who in ("writer", "bob"):
        gateway.ask("save_decision", who, "/decisions/mcp", **decision)
    assert len(gateway.ask("get_recent_decisions", "bob", "/decisions/mcp")["data"]["items"]) == 1
