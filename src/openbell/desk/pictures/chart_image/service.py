"""Chart images: validates configs, and draws them with the vendor or with this desk's own renderer."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from openbell.charts.config.choices import OWN, Plan
from openbell.charts.config.problems import ConfigProblem
from openbell.charts.config.validation import ConfigValidation, plan_of, validate
from openbell.desk.pictures.chart_image.directory_lists import known_instruments
from openbell.desk.pictures.chart_image.errors import KEY_VARIABLE, ConfigRefused
from openbell.desk.pictures.chart_image.own_engine import ENGINE, DrawnBars, OwnEngine
from openbell.desk.pictures.chart_image.pictures import PATH, PictureStore
from openbell.desk.quotes.arche import gateway_file
from openbell.stores.threads import Threads

if TYPE_CHECKING:
    from openbell.charts.config.model import ChartConfig
    from openbell.desk.bars.service import BarService
    from openbell.desk.bars.symbol_advice import SymbolAdvice
    from openbell.desk.bars.watchlist import WatchlistFile
    from openbell.desk.pictures.chart_image.directory import Directory
    from openbell.desk.pictures.chart_image.documentation import DocumentationService
    from openbell.desk.pictures.chart_image.vendor import VendorClient
    from openbell.desk.pictures.indicators import IndicatorService
    from openbell.desk.settings import Settings
    from openbell.market.clock import Clock
    from openbell.market.instruments import Instrument

VENDOR = "chart-img.com"
NOT_SERVED = "the URL answers while openbell up runs"
_DAY = 86400.0


@dataclass(frozen=True, slots=True)
class Generated:
    """A picture, or the URL at which it is stored."""

    format: str
    resolution: str
    generated: datetime
    """By the machine's clock, as the expiry is."""
    engine: str
    status: int = 200
    data: bytes = b""
    url: str | None = None
    expires: datetime | None = None
    remaining: int | None = None
    """How many requests are left of the vendor's day."""
    bars: DrawnBars | None = None
    """What this desk has drawn; None if the vendor has."""
    notes: tuple[str, ...] = ()
    stated: Mapping[str, Any] | None = None
    """What another desk has said about its picture, if one draws in place of the vendor."""


@dataclass(frozen=True, slots=True)
class ImageParts:
    """What chart images use of their desk."""

    settings: Settings
    clock: Clock
    bars: Callable[[], BarService]
    indicators: Callable[[], IndicatorService]
    advice: SymbolAdvice
    watchlist: WatchlistFile
    threads: Threads
    """Read and write stored pictures."""
    drawing: Threads
    is_gateway: Callable[[], bool]
    """Returns True in the process of the gateway, which serves stored pictures."""


class ChartImages:
    """What the server chart-image and the self-hosted API ask."""

    def __init__(self, parts: ImageParts) -> None:
        self._parts = parts
        self._settings = settings = parts.settings
        self.own = OwnEngine(parts.bars, parts.indicators, parts.advice, parts.drawing, simulated=settings.simulated)
        self.pictures = PictureStore(settings)

    @cached_property
    def vendor(self) -> VendorClient | None:
        """The client of the vendor; None without a key."""
        from openbell.desk.pictures.chart_image.vendor import make_client

        return make_client(self._settings, os.environ)

    @cached_property
    def documentation(self) -> DocumentationService:
        """The vendor's documentation."""
        from openbell.desk.pictures.chart_image.documentation import make_documentation

        return make_documentation(self._settings)

    @cached_property
    def directory(self) -> Directory:
        """Exchanges and symbols."""
        from openbell.desk.pictures.chart_image.directory import Directory

        return Directory(self.known_instruments, self.vendor if self._draws_remotely else None)

    async def known_instruments(self) -> list[Instrument]:
        """Returns the instruments that are watched, well known and delivered by the feed, or stored (for the operator)."""
        return await known_instruments(self._parts.bars(), self._parts.watchlist)

    @property
    def plan(self) -> Plan:
        """The plan whose limits hold: the key's, or the renderer's own if this desk draws."""
        return plan_of(self._settings.chart_img_plan) if self._draws_remotely else OWN

    @property
    def _has_key(self) -> bool:
        return bool(os.environ.get(KEY_VARIABLE, "").strip())

    @property
    def _draws_remotely(self) -> bool:
        """Returns False at another clock: the vendor draws as of now."""
        return self._has_key and not self._settings.other_clock

    @property
    def _vendor_name(self) -> str:
        """The host that draws: the vendor, or another desk in its place."""
        host = urlsplit(self._settings.chart_img_url).netloc
        return VENDOR if host.endswith(VENDOR) else host

    def now(self) -> datetime:
        """The desk's time."""
        return datetime.fromtimestamp(self._parts.clock.epoch(), UTC)

    async def validate(self, raw: object, plan: Plan) -> ConfigValidation:
        """Validates a config for a plan; an instrument that this desk cannot draw is an error if it is to draw."""
        found = validate(raw, plan, self.now())
        if found.config is None or (missing := await self.missing(found.config.symbol)) is None:
            return found
        problem = ConfigProblem("symbol", missing, "error", ("Use a symbol that get_symbols lists",))
        return replace(found, problems=(*found.problems, problem))

    async def missing(self, symbol: str) -> str | None:
        """Returns why this desk cannot draw a symbol; None if it can, or if the vendor draws."""
        if self._draws_remotely:
            return None
        try:
            await self.own.instrument(symbol)
        except ConfigRefused as refused:
            return refused.problems[0]["message"]
        return None

    async def generate(self, raw: object, form: str | None, *, store: bool, principal: str) -> Generated:
        """Draws a config. Raises `ConfigRefused` if it is not valid, `VendorError`, `DataError`, `StoreError`
        and `QuotaExceeded`.
        """
        config, notes = await self._checked(raw)
        if form is not None:
            config = replace(config, format=form)
        vendor = self.vendor if self._draws_remotely else None
        made = await (
            self.draw(config, self.plan, store=store, principal=principal)
            if vendor is None
            else self._remote(vendor, config, store)
        )
        return replace(made, notes=tuple(dict.fromkeys((*made.notes, *notes))))

    async def _checked(self, raw: object) -> tuple[ChartConfig, list[str]]:
        """Returns a valid config and its warnings. Raises `ConfigRefused` with all errors if the plan does not allow it."""
        found = await self.validate(raw, self.plan)
        if found.config is None or not found.valid:
            raise ConfigRefused(
                [
                    {"field": each.field, "message": each.message}
                    | ({"suggestion": each.suggestions[0]} if each.suggestions else {})
                    for each in found.problems
                    if each.severity == "error"
                ]
            )
        return found.config, [each.message for each in found.problems if each.severity == "warning"]

    async def draw(self, config: ChartConfig, plan: Plan, *, store: bool, principal: str) -> Generated:
        """Draws a config with this desk's renderer; a stored picture lives as long as the plan says."""
        drawn = await self.own.draw(config)
        made = Generated(
            config.format,
            config.resolution,
            datetime.now(UTC),
            ENGINE,
            data=drawn.data,
            bars=drawn.bars,
            notes=drawn.notes,
        )
        if self._has_key and self._settings.other_clock:
            made = replace(made, notes=(*made.notes, f"drawn here, because {VENDOR} draws as of now"))
        if not store:
            return made
        seconds = plan.storage_days * _DAY
        kept = await self._parts.threads.run(self.pictures.put, principal, drawn.data, config.format, seconds)
        notes = made.notes if self._is_served else (*made.notes, NOT_SERVED)
        return replace(made, url=f"{self.base}{PATH}{kept.name}", expires=kept.expires, notes=notes)

    @property
    def _is_served(self) -> bool:
        """Returns True if a gateway of this home runs, as far as this process knows."""
        settings = self._settings
        return self._parts.is_gateway() or bool(settings.public_url) or gateway_file.read(settings.home) is not None

    @property
    def base(self) -> str:
        """The URL of the gateway of this home: the one that runs, else the one that the settings describe."""
        running = gateway_file.read(self._settings.home)
        if self._settings.public_url:
            return self._settings.public_url.rstrip("/")
        return running.url if running else f"http://{self._settings.host}:{self._settings.port}"

    async def _remote(self, vendor: VendorClient, config: ChartConfig, store: bool) -> Generated:
        now = self.now()
        if store:
            kept = await vendor.store(config, now)
            return Generated(
                kept.format,
                config.resolution,
                datetime.now(UTC),
                self._vendor_name,
                kept.status,
                url=kept.url,
                expires=kept.expires_at,
                remaining=kept.remaining,
                notes=_notes(kept.stated),
                stated=kept.stated,
            )
        drawn = await vendor.draw(config, now)
        return Generated(
            drawn.format,
            config.resolution,
            datetime.now(UTC),
            self._vendor_name,
            drawn.status,
            drawn.data,
            remaining=drawn.remaining,
            notes=(*drawn.notes, *_notes(drawn.stated)),
            stated=drawn.stated,
        )

    async def close(self) -> None:
        """Close every connection."""
        for name in ("vendor", "documentation"):
            part = self.__dict__.get(name)
            if part is not None:
                await part.close()


def _notes(stated: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Returns what another desk notes about its picture."""
    note = stated.get("note") if stated else None
    return (str(note),) if note else ()
