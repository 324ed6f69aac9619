"""The checks of `openbell doctor` that concern vendors: feeds, and who draws chart images."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlsplit

from openbell.cli.findings import Finding, named
from openbell.desk.desk import Desk
from openbell.desk.pictures.chart_image.errors import KEY_VARIABLE
from openbell.desk.pictures.chart_image.pictures import FOLDER
from openbell.market.errors import FeedUnavailable, OpenbellError
from openbell.market.instruments import Instrument
from openbell.market.plural import counted
from openbell.market.provenance import adjustment_of
from openbell.market.series import Series


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
