"""All settings. Each is written once, as a field below: its default, its documentation and what it accepts.

docs/settings.md is generated from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from openbell.backtest.wire.limits import MOST_MESSAGE_MB, USUAL_MESSAGE_MB
from openbell.brokers.registry import all_brokers
from openbell.charts.config.choices import PLANS
from openbell.desk.settings.checks import (
    BARE_PATH,
    HIGHEST_PORT,
    HOST,
    LOG_FORMATS,
    LOG_LEVELS,
    NAME,
    ORIGIN,
    PATH,
    between,
    matching,
    networks,
    one_of,
    one_of_those,
    origins,
    origins_of,
    past_time,
    plain_url,
    port_possible,
    private_url,
    public_address,
    readable_database_url,
    room_levels,
    symbols,
)
from openbell.desk.settings.setting import Setting, of_field, of_option, setting
from openbell.feeds.registry import all_feeds, feed_of
from openbell.market.provenance import Origin
from openbell.stores.registry import StoreBackend, StoreSelection, backend_of

DEFAULT_HOME = Path("~/.openbell")
DEFAULT_SEED, DEFAULT_SCENARIO = 7, "as-of"
_SECONDS = between(0, 1e9)
_SOME_SECONDS = between(0.001, 1e9)
_PLAN = one_of(*(name.lower() for name in PLANS))
_WEB_URL = rf"https?://{NAME}{PATH}"
_KEY = r"[!-~]*"


def _feeds() -> str:
    known = ", ".join(f"{kind.shown} ({kind.help})" for kind in all_feeds().values())
    return f"where bars come from: {known}, or one for each asset class, such as stocks=alpaca,crypto=ccxt:kraken"


def _brokers() -> str:
    known = ", ".join(f"{kind.name} ({kind.help})" for kind in all_brokers().values())
    return f"the broker that carries out orders: {known}"


def _existing_feed(_variable: str, value: Any) -> None:
    feed_of(value)


@cache
def _declared() -> dict[str, Setting]:
    """Returns the settings that feeds and brokers declare, by name."""
    kinds = (*(kind.options for kind in all_feeds().values()), *(kind.options for kind in all_brokers().values()))
    return {option.name: of_option(option) for options in kinds for option in options}


def _defaults() -> dict[str, Any]:
    return {each.name: each.default for each in _declared().values()}


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings. Immutable: every process reads them once."""

    home: Path = setting(DEFAULT_HOME, "folder of all data and settings")
    feed: str = setting("sim", _feeds, _existing_feed)
    as_of: str = setting(
        "", "fix the clock at this time (ISO 8601; no zone means UTC); later data is not used", past_time
    )
    scenario: str = setting(
        "",
        "with as_of: the what-if account to act in; as-of if left out and trading is allowed (openbell scenario)",
        matching(r"([a-z0-9][a-z0-9-]{0,29})?", "may have lower-case letters, digits and dashes, at most 30"),
    )
    replay_speed: float = setting(
        0.0, "with as_of: let the clock run from there, at this multiple of real time", between(0, 1e6)
    )
    sim_seed: int = setting(DEFAULT_SEED, "seed of the simulated market")
    read_only: bool = setting(
        False,
        "refuse every tool that writes and change nothing in the home; no other setting lifts it (bars of a feed are kept "
        "in a temporary folder; openbell halt works all the same)",
    )
    trade: bool = setting(False, "allow the trading tools")
    timeout: float = setting(10.0, "timeout in seconds of one tool call; 0: none", _SECONDS)
    stale_after: float = setting(900.0, "seconds of trading time after which a price is no longer current", _SECONDS)
    cache_candles: float = setting(60.0, "seconds for which results of get_candles are cached", _SECONDS)
    cache_price: float = setting(5.0, "seconds for which results of get_current_price are cached", _SECONDS)
    cache_volatility: float = setting(30.0, "seconds for which results of get_volatility are cached", _SECONDS)
    influx_url: str = setting(
        "",
        "keep bars in this InfluxDB, such as http://127.0.0.1:8086, instead of Parquet files",
        matching(
            rf"(https?://{NAME}{BARE_PATH})?", "must be like http://HOST:8086, its password in OPENBELL_INFLUX_TOKEN"
        ),
    )
    influx_database: str = setting(
        "openbell",
        "its database; simulated bars go to NAME_simulated_SEED",
        matching(r"[A-Za-z0-9_.-]{1,60}", "may have letters, digits, dots, dashes and underscores"),
    )
    influx_token: str = setting(
        "",
        "its token, or user:password",
        matching(_KEY, "holds characters that no token has, such as a space or the end of a line"),
        secret=True,
    )
    pool_influx_connections: int = setting(5, "the most connections to InfluxDB", between(1, 1000))
    pool_influx_idle: float = setting(60.0, "seconds after which an idle connection to it is closed", _SOME_SECONDS)
    pool_influx_connect: float = setting(3.0, "timeout in seconds for connecting to it", _SOME_SECONDS)
    pool_influx_timeout: float = setting(5.0, "timeout in seconds for its answers", _SOME_SECONDS)
    database_url: str = setting(
        "",
        "keep orders, alerts, decisions and the ledger in this PostgreSQL, such as postgresql://USER:PASSWORD@HOST/NAME, "
        "instead of SQLite in the home",
        matching(r"(postgres(ql)?://[!-~]*)?", "must be like postgresql://USER:PASSWORD@HOST/NAME"),
        readable_database_url,
        secret=True,
    )
    pool_postgres_min: int = setting(2, "connections to PostgreSQL that are kept", between(0, 1000))
    pool_postgres_max: int = setting(10, "the most connections to it", between(1, 1000))
    pool_postgres_idle: float = setting(300.0, "seconds after which an idle connection to it is closed", _SOME_SECONDS)
    pool_postgres_connect: float = setting(5.0, "timeout in seconds for connecting to it", _SOME_SECONDS)
    pool_postgres_timeout: float = setting(10.0, "timeout in seconds for its answers", _SOME_SECONDS)
    cache_strategies: float = setting(30.0, "seconds for which results of get_top_strategies are cached", _SECONDS)
    cache_signal: float = setting(10.0, "seconds for which results of get_strategy_signal are cached", _SECONDS)
    cache_consensus: float = setting(30.0, "seconds for which results of get_strategy_consensus are cached", _SECONDS)
    cache_specs: float = setting(60.0, "seconds for which results of get_top_specs are cached", _SECONDS)
    cache_implementations: float = setting(
        30.0, "seconds for which results of get_implementations are cached", _SECONDS
    )
    cache_performance: float = setting(
        300.0, "seconds for which results of get_historical_performance are cached", _SECONDS
    )
    backtest_timeout: float = setting(300.0, "timeout in seconds of one backtest; 0: none", _SECONDS)
    backtester: str = setting(
        "",
        "run backtests at this gRPC service, such as 127.0.0.1:50051 (openbell backtester), instead of in this process",
        matching(rf"({HOST}:\d{{1,5}})?", "must be like HOST:50051"),
        port_possible,
    )
    backtester_message_mb: int = setting(
        USUAL_MESSAGE_MB, "the most megabytes of a request to it, and of its result", between(1, MOST_MESSAGE_MB)
    )
    backtester_tls_ca: str = setting("", "file of the CA that signed its certificate (PEM): connect with TLS")
    backtester_tls_cert: str = setting("", "file of the certificate to present to it (PEM)")
    backtester_tls_key: str = setting("", "file of the key of that certificate (PEM)")
    pool_backtester_connections: int = setting(3, "the most connections to the backtester", between(1, 100))
    pool_backtester_connect: float = setting(3.0, "timeout in seconds for connecting to it", between(0.001, 1e6))
    pool_backtester_keepalive: float = setting(
        30.0, "seconds between pings of a connection to it, at least 1", between(1, 1e6)
    )
    pool_backtester_keepalive_timeout: float = setting(
        10.0, "seconds after which a connection whose ping is not answered is closed", between(0.1, 1e6)
    )
    cache_decisions: float = setting(30.0, "seconds for which results of get_recent_decisions are cached", _SECONDS)
    dask: str = setting(
        "",
        "run sweeps on this Dask scheduler, such as tcp://127.0.0.1:8786, instead of processes; needs openbell[dask]",
        matching(r"((tcp|tls)://[!-?A-~]+:\d{1,5})?", "must be like tcp://HOST:8786"),
    )
    broker: str = setting("paper", _brokers, one_of_those(lambda: tuple(all_brokers())))
    account: str = setting(
        "",
        "the account to trade on; the broker's name if left out (openbell account lists them)",
        matching(r"([A-Za-z0-9][A-Za-z0-9_.-]{0,59})?", "may have letters, digits, dots, dashes and underscores"),
    )
    account_token: str = setting("", "its token, if it has one", secret=True)
    paper_cash: Decimal = setting(Decimal(100_000), "starting cash of a new paper account, in USD", between(0, 1e15))
    paper_fee: Decimal = setting(Decimal("0.001"), "fee on paper, as a share of what is traded", between(0, 0.5))
    paper_slippage: Decimal = setting(
        Decimal("0.0005"), "how much worse than the price paper orders fill, as a share", between(0, 0.5)
    )
    paper_volume_share: Decimal = setting(
        Decimal("0.1"), "share of a bar's volume that paper orders can get", between(1e-6, 1)
    )
    risk_order_share: Decimal = setting(
        Decimal("0.1"), "the most that an order may open, as a share of equity; 0: any", between(0, 1000)
    )
    risk_symbol_share: Decimal = setting(
        Decimal("0.25"), "the same limit for all that is held of a symbol", between(0, 1000)
    )
    risk_order_notional: Decimal = setting(
        Decimal(0), "the most that an order may open, in USD; 0: any", between(0, 1e15)
    )
    risk_symbol_notional: Decimal = setting(
        Decimal(0), "the same limit for all that is held of a symbol", between(0, 1e15)
    )
    risk_positions: int = setting(20, "the most positions at once; 0: any number", between(0, 1_000_000))
    risk_daily_loss: Decimal = setting(
        Decimal("0.05"),
        "loss since 00:00 UTC, as a share of equity, after which nothing is opened; 0: never",
        between(0, 1),
    )
    risk_leverage: Decimal = setting(Decimal(1), "how many times equity all positions may be worth", between(0.01, 100))
    risk_collar: Decimal = setting(
        Decimal("0.05"),
        "how far an order's price may be from the last bar's close, as a share; 0: any distance",
        between(0, 1000),
    )
    risk_short: bool = setting(
        False, "allow orders that sell more than is held, of stocks and forex; spot crypto is never sold short"
    )
    risk_symbols: str = setting("", "the only symbols that may be opened, separated by commas; none: all", symbols)
    host: str = setting(
        "127.0.0.1",
        "the address that the gateway listens on",
        matching(r"[A-Za-z0-9._-]+|[0-9a-fA-F:.]+", "must be an address or a name, such as 127.0.0.1, without a port"),
    )
    port: int = setting(8742, "its port; 0: any free one", between(0, HIGHEST_PORT))
    public_url: str = setting(
        "",
        "the address of the TLS proxy in front of the gateway, such as https://desk.example.com",
        matching(rf"(https?://{NAME})?", "must be like https://desk.example.com, without a path"),
        public_address,
    )
    allowed_hosts: str = setting(
        "",
        "other values of Host that are accepted, exactly as clients send them, such as desk.lan:8742,192.168.1.5:8742",
        matching(rf"({NAME}(,{NAME})*)?", "must be like desk.lan:8742,192.168.1.5:8742"),
    )
    allowed_origins: str = setting(
        "",
        "other values of Origin that are accepted, exactly as browsers send them, such as https://app.example.com",
        matching(rf"({ORIGIN}(,{ORIGIN})*)?", "must be like https://app.example.com,http://localhost:3000"),
    )
    trusted_proxies: str = setting(
        "127.0.0.1,::1",
        "with public_url: addresses of proxies whose X-Forwarded-For and X-Forwarded-Proto are used",
        matching(r"([0-9a-fA-F:./]+(,[0-9a-fA-F:./]+)*)?", "must be addresses, such as 127.0.0.1,10.0.0.0/8"),
        networks,
    )
    open_reading: bool = setting(False, "let clients on this machine read without a token, as the operator")
    chart_signals_http: bool = setting(False, "serve chart-signals over HTTP too; its contract has stdio only")
    metrics: bool = setting(
        False, "serve metrics for Prometheus on /metrics, to this machine and to tokens with scope admin"
    )
    rate_read: int = setting(1200, "calls of reading tools per minute and principal; 0: any number", between(0, 1e7))
    burst_read: int = setting(200, "how many of these may come at once", between(1, 1e6))
    rate_trade: int = setting(120, "calls of trading tools per minute and principal; 0: any number", between(0, 1e7))
    burst_trade: int = setting(30, "how many of these may come at once", between(1, 1e6))
    rate_write: int = setting(
        120,
        "calls of tools that store decisions, specs, pictures or subscriptions, per minute and principal; 0: any number",
        between(0, 1e7),
    )
    burst_write: int = setting(30, "how many of these may come at once", between(1, 1e6))
    quota_pictures: int = setting(500, "the most stored chart images of one principal", between(0, 1e9))
    quota_pictures_mb: int = setting(64, "the most megabytes of them", between(0, 1e9))
    quota_decisions: int = setting(20_000, "the most decisions of one principal", between(0, 1e9))
    quota_decisions_mb: int = setting(256, "the most megabytes of them", between(0, 1e9))
    quota_specs: int = setting(500, "the most strategy specs that one principal can submit", between(0, 1e9))
    quota_alerts: int = setting(1_000, "the most active alerts of one principal", between(0, 1e9))
    quota_subscriptions: int = setting(100, "the most open subscriptions to signals of one principal", between(0, 1e9))
    rate_admin: int = setting(
        60, "calls of administrative tools per minute and principal; 0: any number", between(0, 1e7)
    )
    burst_admin: int = setting(20, "how many of these may come at once", between(1, 1e6))
    rate_signin: int = setting(10, "attempts to sign in per minute and address; 0: any number", between(0, 1e7))
    burst_signin: int = setting(5, "how many of these may come at once", between(1, 1e6))
    max_requests: int = setting(
        256, "requests that the gateway works on at once; more are answered with 503", between(1, 100_000)
    )
    max_requests_each: int = setting(
        64, "the same limit for one principal; more are answered with 429", between(1, 100_000)
    )
    body_limit: int = setting(1_048_576, "the most bytes of a request's body", between(1024, 2**30))
    body_timeout: float = setting(15.0, "seconds in which the whole body of a request must arrive", between(0.1, 3600))
    rate_quotes: int = setting(
        60, "requests of the quotes API per minute and principal; 0: any number", between(0, 1e6)
    )
    rate_quotes_live: int = setting(60, "how many of these may be for live quotes; 0: any number", between(0, 1e6))
    rate_quotes_historical: int = setting(
        30, "how many of these may be for historical bars; 0: any number", between(0, 1e6)
    )
    rate_health: int = setting(120, "requests of /healthz per minute and address; 0: any number", between(0, 1e6))
    rate_metadata: int = setting(
        30, "requests of /v2/openapi.json per minute and address; 0: any number", between(0, 1e6)
    )
    arche_url: str = setting(
        "",
        "the quotes API that the server arche asks, such as https://quotes.example.com; this desk's own if left out",
        matching(rf"({_WEB_URL})?", "must be like https://quotes.example.com, its key in OPENBELL_ARCHE_KEY"),
        plain_url,
    )
    arche_key: str = setting(
        "",
        "its key, sent as X-Api-Key",
        matching(_KEY, "holds characters that no key has, such as a space or the end of a line"),
        secret=True,
    )
    pool_arche_connect: float = setting(3.0, "timeout in seconds for connecting to it", between(0.001, 1e6))
    pool_arche_timeout: float = setting(8.0, "timeout in seconds for its answers", between(0.001, 1e6))
    chart_img_url: str = setting(
        "https://api.chart-img.com",
        "the API that draws chart images if CHART_IMG_API_KEY is set; this desk draws without",
        matching(_WEB_URL, "must be like https://api.chart-img.com"),
        plain_url,
        private_url(": over http, CHART_IMG_API_KEY can be read on the network"),
    )
    chart_img_docs_url: str = setting(
        "https://doc.chart-img.com",
        "the page of its documentation",
        matching(_WEB_URL, "must be like https://doc.chart-img.com"),
        plain_url,
        private_url(": over http, others can change the page"),
    )
    chart_img_plan: str = setting(
        "BASIC",
        "the plan of the key, whose limits are kept: BASIC, PRO, MEGA, ULTRA or ENTERPRISE",
        _PLAN,
    )
    chart_api_plan: str = setting(
        "ENTERPRISE",
        "the plan whose limits each client of the gateway's chart API has: BASIC, PRO, MEGA, ULTRA or ENTERPRISE",
        _PLAN,
    )
    chart_images_mb: int = setting(512, "the most megabytes of stored chart images in the home", between(1, 10**6))
    pool_chart_img_connect: float = setting(3.0, "timeout in seconds for connecting to both", between(0.001, 1e6))
    pool_chart_img_timeout: float = setting(
        20.0, "timeout in seconds for their answers, including all retries", between(0.001, 1e6)
    )
    underscore_names: bool = setting(
        False, "offer tools with dots in their names also with underscores, such as quotes_live"
    )
    webhook_origins: str = setting(
        "",
        "origins to which webhooks may be sent without TLS and in private networks, such as http://127.0.0.1:9000, "
        "separated by commas; all others need https and public addresses",
        origins,
    )
    log_level: str = setting(
        "warning", "level of the log on standard error: debug, info, warning, error", one_of(*LOG_LEVELS)
    )
    log_levels: str = setting(
        "", "other levels for single rooms (folders of the source), such as feeds=debug,trading=info", room_levels
    )
    log_format: str = setting(
        "text", "form of its lines, one for each event, times in UTC: text, json", one_of(*LOG_FORMATS)
    )
    options: Mapping[str, Any] = field(default_factory=_defaults)
    """The values of settings that feeds and brokers declare, by name."""

    @property
    def simulated(self) -> bool:
        """Whether the feed is the simulator."""
        return feed_of(self.feed).origin is Origin.SIMULATED

    @property
    def store_backend(self) -> StoreBackend:
        """The kind of store that holds the bars."""
        # Without a live feed, other programs write to a database.
        shared = feed_of(self.feed).origin in {Origin.IMPORTED, Origin.REPLAY}
        return backend_of(StoreSelection(self.by_name, self.market_folder, self.simulated, shared))

    @property
    def bar_folder(self) -> Path:
        """The folder of bars. Simulated bars have a folder of their own, so that they are never served as real ones.

        If bars are in a database, the folder holds new bars until they are copied there, and metadata.
        """
        return self.store_backend.folder

    @property
    def market_folder(self) -> Path:
        """The folder of one market. The real market and each seed of the simulator have a folder of their own."""
        if not self.simulated:
            return self.home
        market = self.home / "simulated"
        return market if self.sim_seed == DEFAULT_SEED else market / f"seed-{self.sim_seed}"

    @property
    def other_clock(self) -> bool:
        """Whether this desk's clock is not the present; it never writes to the present's records then."""
        return bool(self.as_of) or feed_of(self.feed).origin is Origin.REPLAY

    @property
    def acts_in(self) -> str | None:
        """The scenario that this desk reads and trades in; None if it uses the present's records."""
        if not self.other_clock:
            return None
        return self.scenario or (DEFAULT_SCENARIO if self.trade else None)

    @property
    def live(self) -> bool:
        """Whether orders trade real money."""
        return all_brokers()[self.broker].live(self.options)

    @property
    def account_kind(self) -> str:
        """The kind of account that results show: `paper` or `live`."""
        return "live" if self.live else "paper"

    @property
    def paper_costs(self) -> tuple[float, float]:
        """Fee and slippage on paper, as shares: what strategies are judged by."""
        return float(self.paper_fee), float(self.paper_slippage)

    @property
    def trusted_origins(self) -> frozenset[str]:
        """The origins of `webhook_origins` in their normal form. Raises `InvalidParameter`."""
        return origins_of(self.webhook_origins)

    @property
    def by_name(self) -> dict[str, Any]:
        """All settings by name, for stores, feeds and brokers."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "options"} | dict(
            self.options
        )

    @property
    def secrets(self) -> frozenset[str]:
        """The values of settings that are secrets."""
        return frozenset(value for name, value in self.by_name.items() if all_settings()[name].shows_secret(str(value)))

    @property
    def watchlist_file(self) -> Path:
        """The file of watched symbols."""
        return self.home / "watchlist.txt"


@cache
def all_settings() -> dict[str, Setting]:
    """Returns all settings by name: the fields of `Settings`, and the options that feeds and brokers declare."""
    own = {each.name: each for each in map(of_field, fields(Settings)) if each is not None}
    return own | _declared()
