"""The checks of `openbell doctor` on processes, the gateway, feeds and the vendor of charts; and who reads the files
here.
"""

from __future__ import annotations

import asyncio
import http.client
import os
import platform
import secrets
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from openbell.cli.findings import Finding, named
from openbell.desk.desk import Desk
from openbell.desk.operations.health.asking import ask
from openbell.desk.operations.health.report import DOWN
from openbell.desk.pictures.chart_image.errors import KEY_VARIABLE
from openbell.desk.pictures.chart_image.pictures import FOLDER
from openbell.desk.quotes.arche import gateway_file
from openbell.desk.settings import Settings, file_of
from openbell.desk.settings.private_files import is_shared, open_files
from openbell.market.clock import SystemClock
from openbell.market.errors import FeedUnavailable, OpenbellError
from openbell.market.instruments import Instrument
from openbell.market.plural import counted
from openbell.market.provenance import adjustment_of
from openbell.market.series import Series
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


def check_feeds(desk: Desk) -> Iterator[Finding]:
    """Check that every live vendor responds, and that its minutes can be stored beside those that are."""
    if desk.data != "live":
        return
    import asyncio

    watched = [each for each in desk.watchlist.read().instruments if desk.feed.supports(each)]
    if not watched:
        yield Finding("note", f"feed {desk.feed.name} has none of the watched symbols", "openbell watch add SYMBOL")
        return
    first = {desk.feed.route(each).name: each for each in reversed(watched)}
    yield from asyncio.run(_responses(desk, first))
    yield from _other_adjustments(desk, watched)


def check_collector(desk: Desk) -> Iterator[Finding]:
    """Check that a collector runs."""
    if not desk.settings.bar_folder.exists():
        return
    holder = desk.store.leases.holder("collector")
    if holder:
        yield Finding("ok", f"collector running as {holder}")
    elif desk.feed.source is not None:
        yield Finding("note", "no collector is running: bars are fetched when a tool needs them", "openbell up")


async def _responses(desk: Desk, first: Mapping[str, Instrument]) -> list[Finding]:
    """Request an hour of a week ago from each feed; `first` has an instrument of each."""
    week_ago = int(desk.clock.epoch()) - 7 * 86400
    found = []
    for feed, instrument in first.items():
        began = time.monotonic()
        try:
            bars = await desk.feed.history(Series(instrument), week_ago, week_ago + 3600)
        except FeedUnavailable as error:
            found.append(Finding("bad", error.message, "check the keys and the connection, or set OPENBELL_FEED=sim"))
            continue
        except OpenbellError as error:
            found.append(Finding("bad", f"feed {feed}: {error.message}"))
            continue
        spent = (time.monotonic() - began) * 1000
        found.append(
            Finding("ok", f"feed {feed} responds in {spent:.0f} ms ({counted(len(bars), 'bar')} of {instrument})")
        )
    return found


def _other_adjustments(desk: Desk, watched: Sequence[Instrument]) -> Iterator[Finding]:
    """Report stored minutes of this month that keep the feed's minutes from being stored, by their source."""
    found: dict[tuple[str, str], list[Instrument]] = {}
    for instrument in watched:
        for other, source in _otherwise_adjusted(desk, instrument):
            found.setdefault((other, source), []).append(instrument)
    for (other, source), instruments in sorted(found.items()):
        yield Finding(
            "bad",
            f"minutes of {named(instruments)} in this month come from {other}: those of {source} are adjusted otherwise "
            "and are not stored beside them, so orders of these symbols do not fill",
            f"delete the symbols' minutes of this month in {desk.store.where()}, or import them with the same adjustment",
        )


def _otherwise_adjusted(desk: Desk, instrument: Instrument) -> list[tuple[str, str]]:
    """Returns the sources of stored minutes of this month that are adjusted otherwise, each with the feed's source."""
    from openbell.stores.periods import month_of, period_span
    from openbell.stores.port import Span

    source, now = desk.feed.route(instrument).source, int(desk.clock.epoch())
    if source is None:
        return []
    newest = desk.store.tail(Series(instrument), 1, now)
    month = Span(*period_span(month_of(now)))
    others = (
        desk.store.sources.of(Series(instrument), month) if len(newest) and newest.time[-1] >= month.start else set()
    )
    ours = adjustment_of(instrument, source)
    return [(str(each), str(source)) for each in others if adjustment_of(instrument, each) != ours]


_NEARLY_FULL = 0.9


def check_chart_images(desk: Desk) -> Iterator[Finding]:
    """Name the engine, and warn before the store of pictures is full. Contacts nobody."""
    settings = desk.settings
    if not os.environ.get(KEY_VARIABLE, "").strip():
        yield Finding("ok", f"chart images are drawn by this desk; with {KEY_VARIABLE} the vendor draws them")
    elif settings.other_clock:
        yield Finding("ok", "chart images are drawn by this desk, because the vendor draws as of now")
    else:
        host = urlsplit(settings.chart_img_url).hostname
        yield Finding("ok", f"chart images are drawn by {host} within the plan {settings.chart_img_plan.upper()}")
    folder = settings.home / FOLDER
    used = sum(path.stat().st_size for path in folder.rglob("*")) / 2**20 if folder.is_dir() else 0.0
    if used > _NEARLY_FULL * settings.chart_images_mb:
        yield Finding(
            "note",
            f"stored chart images take {used:.0f} of {settings.chart_images_mb} MB",
            f"set OPENBELL_CHART_IMAGES_MB, or remove files from {folder}",
        )
