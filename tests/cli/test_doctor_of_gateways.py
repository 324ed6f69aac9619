"""`openbell doctor` about the gateway: does it answer, who can sign in, do webhooks arrive."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

from openbell.stores.records import webhooks
from openbell.stores.records.journal import Journal
from tests.cli.in_process import command
from tests.gateway.receivers import Receiver
from tests.gateway.streamable.gateways import Inside
from tests.gateway.webhooks.desks import ME, desk_at, fill


def doctor(home: Path, **settings: str) -> tuple[int, str]:
    code, output, _ = command(home, "doctor", **settings)
    return code, output


def test_a_home_without_gateway_and_tokens(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    code, output = doctor(tmp_path / "new", PORT=port)
    assert code == 0
    assert f"no gateway on http://127.0.0.1:{port}" in output
    assert "no token and no passphrase: clients over HTTP are refused" in output
    assert not (tmp_path / "new").exists()
    assert "clients over HTTP can only read" in doctor(tmp_path / "new", PORT=port, OPEN_READING="1")[1]
    assert "any free port" in doctor(tmp_path / "new", PORT="0")[1]
    assert "without TLS" in doctor(tmp_path / "new", PORT=port, HOST="0.0.0.0", ALLOWED_HOSTS="desk.lan:80")[1]


def test_a_gateway_that_answers_and_its_tokens(tmp_path: Path) -> None:
    with Inside(tmp_path) as gateway:
        code, output = doctor(tmp_path, PORT=str(gateway.port))
        assert code == 0, output
        assert f"gateway answers on http://127.0.0.1:{gateway.port}" in output
        assert "5 tokens and 0 users with a passphrase" in output


def test_another_program_on_the_port(tmp_path: Path) -> None:
    with Receiver() as other:
        code, output = doctor(tmp_path, PORT=str(other.port))
        assert code == 1
        assert "is not this gateway (/healthz: 204)" in output
        assert "OPENBELL_PORT" in output
    with socket.create_server(("127.0.0.1", 0)) as silent:
        code, output = doctor(tmp_path, PORT=str(silent.getsockname()[1]))
        assert code == 1
        assert "does not answer" in output


def test_deliveries_of_webhooks(tmp_path: Path) -> None:
    async def queue() -> None:
        async with desk_at(tmp_path, Receiver(port=9)) as desk:
            made = (await desk.webhooks.add(ME, "http://127.0.0.1:9/x", ("fill",), ()))[0]
            await fill(desk)

            def work(journal: Journal) -> None:
                for seq, dead in ((1, True), (2, False)):
                    delivery = webhooks.Delivery(f"d{seq}", made.id, seq, "fill", "{}", 1.0, 1.0, dead=dead)
                    webhooks.queue(journal.view, [delivery])

            await desk.trading.records.write(work)

    asyncio.run(queue())
    code, output = doctor(tmp_path, PORT="0")
    assert code == 1
    assert "webhooks: 1 given up" in output
    assert "webhooks: 1 waiting" in output
