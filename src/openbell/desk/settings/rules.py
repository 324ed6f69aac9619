"""Contradictions between settings: each of them is accepted alone, and they are not together."""

from __future__ import annotations

from openbell.brokers.registry import all_brokers
from openbell.desk.settings.checks import is_private
from openbell.desk.settings.settings import Settings
from openbell.feeds.registry import feed_of
from openbell.market.errors import SettingsError
from openbell.market.provenance import Origin
from openbell.net.addresses import is_loopback


def check_together(settings: Settings) -> None:
    """Raise `SettingsError` for settings that contradict each other."""
    if settings.pool_postgres_min > settings.pool_postgres_max:
        raise SettingsError("OPENBELL_POOL_POSTGRES_MIN must not be more than OPENBELL_POOL_POSTGRES_MAX")
    if bool(settings.backtester_tls_cert) != bool(settings.backtester_tls_key):
        raise SettingsError("OPENBELL_BACKTESTER_TLS_CERT and OPENBELL_BACKTESTER_TLS_KEY need each other")
    if settings.backtester_tls_cert and not settings.backtester_tls_ca:
        raise SettingsError("OPENBELL_BACKTESTER_TLS_CERT needs OPENBELL_BACKTESTER_TLS_CA: without it there is no TLS")
    if settings.arche_key and not is_private(settings.arche_url):
        raise SettingsError("OPENBELL_ARCHE_URL: over http, OPENBELL_ARCHE_KEY can be read on the network; use https")
    _check_clock(settings)
    _check_broker(settings)
    _check_gateway(settings)


def _check_clock(settings: Settings) -> None:
    if settings.scenario and not settings.other_clock:
        raise SettingsError("--scenario (OPENBELL_SCENARIO) needs --as-of: the present has no scenarios")
    if settings.replay_speed and not settings.as_of:
        raise SettingsError("OPENBELL_REPLAY_SPEED needs OPENBELL_AS_OF, the time to begin at")


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


def _check_gateway(settings: Settings) -> None:
    """Raise `SettingsError` if anybody could read without a token, or tokens would be sent over a network without TLS."""
    if settings.open_reading and settings.public_url:
        raise SettingsError(
            "OPENBELL_OPEN_READING lets clients without a token read, and OPENBELL_PUBLIC_URL makes the gateway public: "
            "unset one of them, and give clients a token (openbell token add NAME --scopes read)"
        )
    if not is_loopback(settings.host) and not settings.public_url and not settings.allowed_hosts:
        raise SettingsError(
            f"OPENBELL_HOST={settings.host} can be reached from other machines, and the gateway has no TLS: put a TLS "
            "proxy in front of it and set OPENBELL_PUBLIC_URL, or name in OPENBELL_ALLOWED_HOSTS what clients call it"
        )
