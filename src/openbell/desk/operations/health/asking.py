"""Asks the process that runs a home's desk for its health. Changes nothing and loads little, so that it is cheap.

The process writes its address and a key to `gateway.json` in the home. Without an answer, only what the home's files tell
is known: the rest is reported as unknown.
"""

from __future__ import annotations

import http.client
import json
import secrets
import time
from dataclasses import replace
from pathlib import Path

from openbell.desk.operations.health.report import (
    DEGRADED,
    DOWN,
    FAILING,
    UNKNOWN,
    WORKING,
    HealthFigures,
    HealthPart,
    HealthSnapshot,
    free_bytes,
    read_payload,
    versions,
)
from openbell.desk.orders.halt_file import HALT_FILE, HaltFile
from openbell.desk.quotes.arche import gateway_file
from openbell.desk.settings import Settings
from openbell.market.clock import iso
from openbell.net.this_machine import get

PATH = "/health"
_SECONDS = 4.0
"""How long the process may take to answer. Its stores get 1.5 s."""
_PARTS = ("records", "bars", "feed", "collector", "engine", "gateway", "webhooks")
_NOBODY = "no process runs this desk: openbell up starts one"


def ask(settings: Settings) -> HealthSnapshot:
    """Returns the health of the desk of these settings, from the process that runs it."""
    file = gateway_file.read(settings.home)
    if file is not None:
        return _ask(settings.home, file)
    if gateway_file.describe(settings, settings.port) is None and settings.port:
        return _ask_openly(settings)
    return _down(settings.home, _NOBODY)


def _ask(home: Path, file: gateway_file.GatewayFile) -> HealthSnapshot:
    request = secrets.token_hex(12)
    try:
        answer = get(file.url + PATH, {"X-Request-ID": request, **file.proof(request)}, seconds=_SECONDS)
        if not file.has_sent(request, answer.headers.get(gateway_file.IDENTITY.lower())):
            return _down(home, f"{_NOBODY} (another program listens on {file.url})")
        return read_payload(json.loads(answer.body))
    except ConnectionRefusedError:
        return _down(home, f"the process that ran this desk on {file.url} was killed: openbell up starts one")
    except TimeoutError:
        return _down(home, f"the process that runs this desk on {file.url} does not answer in {_SECONDS:g} s")
    except (OSError, http.client.HTTPException, ValueError, TypeError, KeyError) as error:
        return _down(home, f"{file.url} did not answer as this version does ({type(error).__name__})")


def _ask_openly(settings: Settings) -> HealthSnapshot:
    """Ask a gateway that has written no file, because it is read-only or listens on an address of the network only."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104 - compared, not bound
    url = f"http://{f'[{host}]' if ':' in host else host}:{settings.port}"
    try:
        answer = get(f"{url}/readyz", seconds=_SECONDS)
        known = json.loads(answer.body)
        failing = [str(each) for each in known.get("failing", [])] if answer.status == 503 else []
        if known["status"] not in {"ready", "not ready"}:
            return _down(settings.home, f"{_NOBODY} (another program listens on {url})")
    except (OSError, http.client.HTTPException, ValueError, TypeError, KeyError):
        return _down(settings.home, f"no process answers on {url}: openbell up starts one")
    why = "the gateway is read-only or listens on the network only: ask /health with a token of scope admin"
    parts = {name: HealthPart(UNKNOWN, why) for name in _PARTS} | {name: HealthPart(FAILING) for name in failing}
    parts["gateway"] = HealthPart(WORKING, "answers")
    state = DEGRADED if failing else WORKING
    return _report(settings.home, state, f"{url} answers; not known: {why}", parts)


def unreadable_settings(home: Path, text: str) -> HealthSnapshot:
    """Returns the report on a desk whose settings are invalid: nobody can be asked, and no desk can start with them."""
    found = _down(home, f"the settings are invalid: {text}")
    return replace(found, parts={**found.parts, "settings": HealthPart(FAILING, text)})


def _down(home: Path, text: str) -> HealthSnapshot:
    unknown = HealthPart(UNKNOWN, "not known: no process answers; openbell doctor looks at the stores itself")
    return _report(home, DOWN, text, dict.fromkeys(_PARTS, unknown))


def _report(home: Path, state: str, text: str, parts: dict[str, HealthPart]) -> HealthSnapshot:
    figures = HealthFigures(free_bytes=free_bytes(home)).with_halt(HaltFile(home / HALT_FILE).read())
    return HealthSnapshot(state, text, iso(int(time.time())), str(home), versions(), None, parts, figures)
