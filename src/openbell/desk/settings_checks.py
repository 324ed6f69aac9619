"""Checks of settings: ranges, choices and patterns of single settings, and contradictions between them."""

from __future__ import annotations

import re
import time
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from openbell.brokers.registry import all_brokers
from openbell.charts.config.plans import PLANS
from openbell.desk.logs.setup import FORMATS, LEVELS, levels_of
from openbell.desk.settings_urls import check_database_url
from openbell.feeds.declaration import Option
from openbell.feeds.registry import all_feeds, feed_of
from openbell.market.clock import iso, parse_time
from openbell.market.errors import InvalidParameter, InvalidSymbol, SettingsError
from openbell.market.instruments import parse
from openbell.market.nearest import did_you_mean
from openbell.market.provenance import Origin

if TYPE_CHECKING:
    from openbell.desk.settings import Settings

PREFIX = "OPENBELL_"
_HIGHEST_PORT = 65535
_CHOICES = {
    "log_level": LEVELS,
    "log_format": FORMATS,
    **dict.fromkeys(("chart_img_plan", "chart_api_plan"), tuple(name.lower() for name in PLANS)),
}
_RANGES: dict[str, tuple[float, float]] = {
    **dict.fromkeys(
        ("timeout", "stale_after", "cache_candles", "cache_price", "cache_volatility", "cache_decisions"), (0, 1e9)
    ),
    **dict.fromkeys(("pool_postgres_idle", "pool_postgres_connect", "pool_postgres_timeout"), (0.001, 1e9)),
    "pool_postgres_min": (0, 1000),
    "pool_postgres_max": (1, 1000),
    "paper_cash": (0, 1e15),
    "paper_fee": (0, 0.5),
    "paper_slippage": (0, 0.5),
    "paper_volume_share": (1e-6, 1),
    **dict.fromkeys(("risk_order_share", "risk_symbol_share", "risk_collar"), (0, 1000)),
    **dict.fromkeys(("risk_order_notional", "risk_symbol_notional"), (0, 1e15)),
    "risk_positions": (0, 1_000_000),
    "risk_daily_loss": (0, 1),
    "risk_leverage": (0.01, 100),
    **dict.fromkeys(("pool_influx_idle", "pool_influx_connect", "pool_influx_timeout"), (0.001, 1e9)),
    "pool_influx_connections": (1, 1000),
    "backtest_timeout": (0, 1e9),
    "pool_backtester_connections": (1, 100),
    "pool_backtester_connect": (0.001, 1e6),
    "pool_backtester_keepalive": (1, 1e6),
    "pool_backtester_keepalive_timeout": (0.1, 1e6),
    "replay_speed": (0, 1e6),
    "port": (0, 65535),
    **dict.fromkeys(("rate_read", "rate_trade", "rate_admin", "rate_signin"), (0, 1e7)),
    **dict.fromkeys(("burst_read", "burst_trade", "burst_admin", "burst_signin"), (1, 1e6)),
    **dict.fromkeys(("max_requests", "max_requests_each"), (1, 100_000)),
    **dict.fromkeys(
        ("rate_quotes", "rate_quotes_live", "rate_quotes_historical", "rate_health", "rate_metadata"), (0, 1e6)
    ),
    **dict.fromkeys(("pool_arche_connect", "pool_arche_timeout"), (0.001, 1e6)),
    **dict.fromkeys(("pool_chart_img_connect", "pool_chart_img_timeout"), (0.001, 1e6)),
    "chart_images_mb": (1, 10**6),
    "body_limit": (1024, 2**30),
    "body_timeout": (0.1, 3600),
}
_NAME = r"([A-Za-z0-9._-]+|\[[0-9a-fA-F:.]+\])(:\d{1,5})?"
"""A host name or address, with a port or without."""
_PATH = r"(/[!-?A-~]*)?"
"""Without an @: the host before it would be a user name, and part of the path a password."""
_BARE_PATH = r"""(/[!"$->A-~]*)?"""
"""Without a query or a fragment either, which may hold a password: errors name this URL."""
_ORIGIN = rf"[a-z][a-z0-9+.-]*://{_NAME}"
_PATTERNS = {
    "influx_url": (
        rf"(https?://{_NAME}{_BARE_PATH})?",
        "must be like http://HOST:8086, its password in OPENBELL_INFLUX_TOKEN",
    ),
    "arche_url": (
        rf"(https?://{_NAME}{_PATH})?",
        "must be like https://quotes.example.com, its key in OPENBELL_ARCHE_KEY",
    ),
    "chart_img_url": (rf"https?://{_NAME}{_PATH}", "must be like https://api.chart-img.com"),
    "chart_img_docs_url": (rf"https?://{_NAME}{_PATH}", "must be like https://doc.chart-img.com"),
    "arche_key": (r"[!-~]*", "holds characters that no key has, such as a space or the end of a line"),
    "backtester": (r"(([A-Za-z0-9._-]+|\[[0-9a-fA-F:.]+\]):\d{1,5})?", "must be like HOST:50051"),
    "influx_token": (r"[!-~]*", "holds characters that no token has, such as a space or the end of a line"),
    "scenario": (r"([a-z0-9][a-z0-9-]{0,29})?", "may have lower-case letters, digits and dashes, at most 30"),
    "account": (r"([A-Za-z0-9][A-Za-z0-9_.-]{0,59})?", "may have letters, digits, dots, dashes and underscores"),
    "database_url": (r"(postgres(ql)?://[!-~]*)?", "must be like postgresql://USER:PASSWORD@HOST/NAME"),
    "dask": (r"((tcp|tls)://[!-?A-~]+:\d{1,5})?", "must be like tcp://HOST:8786"),
    "influx_database": (r"[A-Za-z0-9_.-]{1,60}", "may have letters, digits, dots, dashes and underscores"),
    "host": (r"[A-Za-z0-9._-]+|[0-9a-fA-F:.]+", "must be an address or a name, such as 127.0.0.1, without a port"),
    "public_url": (rf"(https?://{_NAME})?", "must be like https://desk.example.com, without a path"),
    "allowed_hosts": (rf"({_NAME}(,{_NAME})*)?", "must be like desk.lan:8742,192.168.1.5:8742"),
    "allowed_origins": (rf"({_ORIGIN}(,{_ORIGIN})*)?", "must be like https://app.example.com,http://localhost:3000"),
    "trusted_proxies": (r"([0-9a-fA-F:./]+(,[0-9a-fA-F:./]+)*)?", "must be addresses, such as 127.0.0.1,10.0.0.0/8"),
}


def declared_options() -> list[Option]:
    """Returns the settings that feeds and brokers declare."""
    kinds = (*(kind.options for kind in all_feeds().values()), *(kind.options for kind in all_brokers().values()))
    return [option for options in kinds for option in options]


def check(settings: Settings) -> None:
    """Raise `SettingsError` for values that are out of range or contradict each other."""
    feed_of(settings.feed)
    declared = {option.name: option.choices for option in declared_options() if option.choices}
    for name, choices in ({"broker": tuple(all_brokers())} | declared | _CHOICES).items():
        value = settings.by_name[name]
        if value.lower() not in choices:
            raise SettingsError(
                f"{PREFIX}{name.upper()} is {value!r}: use {', '.join(choices)}{did_you_mean(value, choices)}"
            )
    for name, (low, high) in _RANGES.items():
        if not low <= getattr(settings, name) <= high:
            raise SettingsError(f"{PREFIX}{name.upper()} must be between {low:,g} and {high:,g}")
    for name, (pattern, hint) in _PATTERNS.items():
        if not re.fullmatch(pattern, getattr(settings, name)):
            raise SettingsError(f"{PREFIX}{name.upper()} {hint}")
    if settings.pool_postgres_min > settings.pool_postgres_max:
        raise SettingsError("OPENBELL_POOL_POSTGRES_MIN must not be more than OPENBELL_POOL_POSTGRES_MAX")
    if bool(settings.backtester_tls_cert) != bool(settings.backtester_tls_key):
        raise SettingsError("OPENBELL_BACKTESTER_TLS_CERT and OPENBELL_BACKTESTER_TLS_KEY need each other")
    if settings.backtester_tls_cert and not settings.backtester_tls_ca:
        raise SettingsError("OPENBELL_BACKTESTER_TLS_CERT needs OPENBELL_BACKTESTER_TLS_CA: without it there is no TLS")
    port = settings.backtester.rpartition(":")[2]
    if port and not 0 < int(port) <= _HIGHEST_PORT:
        raise SettingsError(f"OPENBELL_BACKTESTER has the port {port}: use one from 1 to {_HIGHEST_PORT}")
    _check_clock(settings)
    _check_broker(settings)
    _check_texts(settings)
    levels_of(settings.log_levels)
    _check_arche(settings)
    _check_chart_img(settings)
    _check_gateway(settings)


def _check_texts(settings: Settings) -> None:
    """Raise `SettingsError` for texts that cannot be parsed."""
    if settings.database_url:
        check_database_url(settings.database_url)
    try:
        _ = settings.trusted_origins
    except InvalidParameter as error:
        raise SettingsError(f"OPENBELL_WEBHOOK_ORIGINS: {error}") from None
    for symbol in settings.risk_symbols.split(","):
        if symbol.strip():
            try:
                parse(symbol)
            except InvalidSymbol as error:
                raise SettingsError(f"OPENBELL_RISK_SYMBOLS: {error}") from None


def _check_arche(settings: Settings) -> None:
    """Raise `SettingsError` if the URL of a quotes API cannot be used, or its key would be sent without TLS."""
    if not _is_private(settings, "arche_url") and settings.arche_key:
        raise SettingsError("OPENBELL_ARCHE_URL: over http, OPENBELL_ARCHE_KEY can be read on the network; use https")


def _check_chart_img(settings: Settings) -> None:
    """Raise `SettingsError` if a URL of chart images cannot be used, or the key would be sent without TLS."""
    if not _is_private(settings, "chart_img_url"):
        raise SettingsError(
            "OPENBELL_CHART_IMG_URL: over http, CHART_IMG_API_KEY can be read on the network; use https"
        )
    if not _is_private(settings, "chart_img_docs_url"):
        raise SettingsError("OPENBELL_CHART_IMG_DOCS_URL: over http, others can change the page; use https")


def _is_private(settings: Settings, name: str) -> bool:
    """Returns True if others cannot read or change what is sent to the URL of a setting.

    Raises `SettingsError` if it cannot be used.
    """
    variable = PREFIX + name.upper()
    try:
        parts = urlsplit(getattr(settings, name))
        _ = parts.port
    except ValueError as error:
        raise SettingsError(f"{variable}: {error}") from None
    if parts.query or parts.fragment:
        raise SettingsError(f"{variable} must not have a query or a fragment")
    return parts.scheme != "http" or is_loopback(parts.hostname or "")


def _check_gateway(settings: Settings) -> None:
    """Raise `SettingsError` if tokens would be sent over a network without TLS, or the gateway could not be reached."""
    try:
        public = urlsplit(settings.public_url)
        _ = public.port
        for each in settings.trusted_proxies.split(","):
            ip_network(each or "::1", strict=False)
    except ValueError as error:
        raise SettingsError(f"OPENBELL_PUBLIC_URL or OPENBELL_TRUSTED_PROXIES: {error}") from None
    if public.scheme == "http" and not is_loopback(public.hostname or ""):
        raise SettingsError(
            f"OPENBELL_PUBLIC_URL is {settings.public_url}: over http, tokens can be read on the network; use https"
        )
    if not is_loopback(settings.host) and not settings.public_url and not settings.allowed_hosts:
        raise SettingsError(
            f"OPENBELL_HOST={settings.host} can be reached from other machines, and the gateway has no TLS: put a TLS "
            "proxy in front of it and set OPENBELL_PUBLIC_URL, or name in OPENBELL_ALLOWED_HOSTS what clients call it"
        )


def is_loopback(host: str) -> bool:
    """Returns True for localhost and for addresses that only this machine can reach."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _check_broker(settings: Settings) -> None:
    """Raise `SettingsError` if orders at a broker would be based on simulated, replayed or past bars."""
    if all_brokers()[settings.broker].make is None:
        return
    if feed_of(settings.feed).origin in {Origin.SIMULATED, Origin.REPLAY}:
        raise SettingsError(
            f"OPENBELL_BROKER={settings.broker} needs real prices, and the feed is {settings.feed}: "
            "set OPENBELL_FEED=alpaca, or trade on paper"
        )
    if settings.as_of:
        raise SettingsError(f"OPENBELL_BROKER={settings.broker} trades now: it cannot be used with --as-of")


def _check_clock(settings: Settings) -> None:
    if settings.scenario and not settings.other_clock:
        raise SettingsError("--scenario (OPENBELL_SCENARIO) needs --as-of: the present has no scenarios")
    if not settings.as_of:
        if settings.replay_speed:
            raise SettingsError("OPENBELL_REPLAY_SPEED needs OPENBELL_AS_OF, the time to begin at")
        return
    try:
        moment = parse_time(settings.as_of)
    except InvalidParameter as error:
        raise SettingsError(f"--as-of (OPENBELL_AS_OF): {error}") from None
    if moment > time.time():
        raise SettingsError(
            f"--as-of {settings.as_of} is later than this machine's time, {iso(int(time.time()))}: use an earlier time"
        )
