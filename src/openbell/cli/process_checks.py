"""The checks of `openbell doctor` on running processes: the desk, its Python, who reads its files, and the gateway."""

from __future__ import annotations

import asyncio
import http.client
import platform
import secrets
import sys
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from openbell.cli.findings import Finding
from openbell.desk.desk import Desk
from openbell.desk.operations.health.asking import ask
from openbell.desk.operations.health.report import DOWN
from openbell.desk.quotes.arche import gateway_file
from openbell.desk.settings import Settings, file_of
from openbell.desk.settings.private_files import is_shared, open_files
from openbell.market.clock import SystemClock
from openbell.market.plural import counted
from openbell.net.addresses import is_loopback
from openbell.net.this_machine import get

_SECONDS = 2.0
"""How long the gateway may take to answer."""
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not bound


def check_health(desk: Desk) -> Iterator[Finding]:
    """Report the parts that fail in the process that runs the desk, and since when."""
    health = ask(desk.settings)
    if health.state == DOWN:
        yield Finding("note", health.text, "openbell up")
        return
    for name, part in health.failing.items():
        yield Finding("bad", f"{name} of the running desk: {part}")
    if not health.failing:
        yield Finding("ok", f"the running desk: {health.text}")


def check_privacy(desk: Desk) -> Iterator[Finding]:
    """Report secrets and files that other users of this machine can read."""
    home = desk.settings.home
    if warning := file_of(home).warning:
        yield Finding("bad", warning, f"chmod 600 {file_of(home).path}")
    if found := open_files(home):
        files = f", and so can {counted(len(found) - 1, 'file')} in it" if len(found) > 1 else ""
        yield Finding("note", f"home {home} can be read by other users{files}", f"chmod -R go= {home}")
    elif is_shared(home):
        yield Finding("note", f"home {home} is shared with its group: members can read bars, settings and logs")


class _Hole(NamedTuple):
    name: str
    effect: str
    mended: Mapping[int, int]
    """The first patch level without it, by minor version; other minor versions never had it."""


_HOLES = (
    _Hole("CVE-2024-7592", "a Cookie header can cost seconds", {11: 10, 12: 6}),
    _Hole("CVE-2024-4032", "some private addresses count as public", {11: 10, 12: 4}),
    _Hole("CVE-2024-8088", "reading a zip file may never end", {11: 10, 12: 6}),
)
"""In modules that Openbell, or a part of it, uses. docs/decisions/0023-guard.md says what protects from each."""


def check_python(_desk: Desk) -> Iterator[Finding]:
    """Name the holes of the Python that runs."""
    found = holes(sys.version_info[1], sys.version_info[2])
    if found:
        names = "; ".join(f"{hole.name}: {hole.effect}" for hole in found)
        newest = max(hole.mended[sys.version_info[1]] for hole in found)
        mended = f"3.{sys.version_info[1]}.{newest}"
        yield Finding(
            "note",
            f"Python {platform.python_version()} has known holes ({names}), unless your system has mended them",
            f"install Python {mended} or newer, then make clean and make PYTHON=/path/to/python up",
        )


def holes(minor: int, patch: int) -> list[_Hole]:
    """Returns the holes of Python 3.MINOR.PATCH."""
    return [hole for hole in _HOLES if patch < hole.mended.get(minor, 0)]


def check_gateway(desk: Desk) -> Iterator[Finding]:
    """Check the gateway of these settings, whichever process runs it."""
    yield from _answer(desk.settings)
    yield from _exposure(desk.settings)
    yield from asyncio.run(_access(desk.settings))
    if not desk.settings.other_clock:
        yield from asyncio.run(_webhooks(desk.settings))


def _answer(settings: Settings) -> Iterator[Finding]:
    if not settings.port:
        yield Finding(
            "note", "the gateway uses any free port, which openbell up prints", "set OPENBELL_PORT to know it"
        )
        return
    host = _ANY.get(settings.host, settings.host)
    shown = f"http://{f'[{host}]' if ':' in host else host}:{settings.port}"
    try:
        file = gateway_file.read(settings.home)
        number = secrets.token_hex(12)
        proof = file.proof(number) if file else {}
        answer = get(f"{shown}/healthz", {"X-Request-ID": number, **proof}, seconds=_SECONDS)
        is_gateway = answer.status == 200 and b'"status"' in answer.body[:1024]
        ours = file is not None and file.has_sent(number, answer.headers.get(gateway_file.IDENTITY.lower()))
    except ConnectionRefusedError:
        yield Finding("note", f"no gateway on {shown}: MCP over HTTP is not served", "openbell up")
        return
    except (OSError, http.client.HTTPException) as error:
        yield Finding(
            "bad", f"the program on {shown} does not answer: {str(error) or type(error).__name__}", "openbell up"
        )
        return
    if is_gateway and ours:
        yield Finding("ok", f"gateway answers on {shown}")
    elif is_gateway:
        text = (
            f"the gateway on {shown} is not one of this home, or is read-only: it may not know the tokens of this home"
        )
        yield Finding("note", text, "set OPENBELL_PORT to the port of this home's gateway")
    else:
        text = f"the program on {shown} is not this gateway (/healthz: {answer.status})"
        yield Finding("bad", text, "stop it, or set OPENBELL_PORT to another port")


def _exposure(settings: Settings) -> Iterator[Finding]:
    if not is_loopback(settings.host) and not settings.public_url:
        yield Finding(
            "note",
            f"the gateway listens on {settings.host} without TLS: tokens can be read on the network",
            "put a TLS proxy in front and set OPENBELL_PUBLIC_URL (docs/gateway.md)",
        )


async def _access(settings: Settings) -> list[Finding]:
    """Report how many tokens and users there are."""
    from openbell.desk.settings.access import FILE, make_access
    from openbell.stores.access import static_tokens, users

    if not settings.database_url and not (settings.home / FILE).exists():
        return [_nobody(settings)]
    store = make_access(settings)
    try:
        if not await store.database.exists():
            return [_nobody(settings)]
        tokens, people = await store.read(lambda each: (static_tokens.listed(each), users.count(each)))
    finally:
        await store.close()
    now = SystemClock().epoch()
    expired = [each.name for each in tokens if each.expires_at is not None and each.expires_at <= now]
    valid = len(tokens) - len(expired)
    found = [
        Finding("ok", f"{counted(valid, 'token')} and {counted(people, 'user')} with a passphrase")
        if valid or people
        else _nobody(settings)
    ]
    if expired:
        names = ", ".join(expired[:5]) + (", …" if len(expired) > 5 else "")
        found.append(
            Finding("note", f"{counted(len(expired), 'token')} expired: {names}", "openbell token remove NAME")
        )
    return found


def _nobody(settings: Settings) -> Finding:
    text = "no token and no passphrase: "
    text += "clients over HTTP can only read" if settings.open_reading else "clients over HTTP are refused"
    return Finding("note", text, "openbell token add NAME --scopes read, or openbell passphrase")


async def _webhooks(settings: Settings) -> list[Finding]:
    """Report deliveries of webhooks that wait for long or were given up."""
    from openbell.stores.records import webhooks

    if not settings.database_url and not (settings.market_folder / "records.sqlite").exists():
        return []
    async with Desk(settings) as desk:
        counts = await desk.trading.records.read(webhooks.counts, check_head=False)
    dead = sum(count for (_, is_dead), count in counts.items() if is_dead)
    waiting = sum(count for (_, is_dead), count in counts.items() if not is_dead)
    found = []
    if waiting:
        found.append(Finding("note", f"webhooks: {waiting} waiting to be sent", "openbell webhook list"))
    if dead:
        found.append(Finding("bad", f"webhooks: {dead} given up after a day of failures", "openbell webhook dead"))
    return found
