"""The receiver in docs/webhooks.md runs as it is written."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import httpx2

from openbell.gateway.outbound import Outbound
from tests.gateway.services import free_port
from tests.gateway.webhooks.desks import ME, desk_at, fill, fire, sending
from tests.prefork import Process
from tests.servers.desks import awaited
from tests.waiting import PATIENCE, wait_for

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "webhooks.md").read_text(encoding="utf-8")


def answers(url: str) -> bool:
    try:
        httpx2.get(url, trust_env=False)
    except httpx2.ConnectError:
        return False
    return True


@awaited
async def test_the_receiver_takes_signed_events_once_and_refuses_others(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    script, port = tmp_path / "receiver.py", free_port()
    script.write_text(code)
    url = f"http://127.0.0.1:{port}"
    async with desk_at(tmp_path / "home", WEBHOOK_ORIGINS=url) as desk:
        _, secret = await desk.webhooks.add(ME, url)
        with Process(
            [sys.executable, str(script), str(port)],
            env={**os.environ, "WEBHOOK_SECRET": secret},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            try:
                assert process.stdout
                wait_for(lambda: answers(url), "the receiver")
                forged = {"Openbell-Signature": "t=1,v1=00"}
                answer = await Outbound(trusted=[url]).request("POST", url, headers=forged, body=b"{}")
                assert answer.status == 400
                async with asyncio.timeout(PATIENCE), sending(desk):
                    await fire(desk)
                    await fill(desk, "ETH/USD")
                    lines = [await asyncio.to_thread(process.stdout.readline) for _ in range(2)]
                assert lines == ["alert BTC/USD simulated\n", "fill ETH/USD simulated\n"]
            finally:
                process.kill()
