"""Settings: `openbell.toml` in the home and OPENBELL_* variables. A variable overrides the file.

Each setting is one field below; its help text is the documentation (docs/settings.md is generated from it).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

from openbell.brokers.registry import all_brokers
from openbell.desk.settings_checks import PREFIX, check, declared_options
from openbell.desk.settings_file import NAME, read_file
from openbell.desk.settings_values import typed
from openbell.desk.targets import parse_origin
from openbell.feeds.declaration import Option
from openbell.feeds.registry import all_feeds, feed_of
from openbell.market.errors import SettingsError
from openbell.market.nearest import did_you_mean
from openbell.market.provenance import Origin

_HOME = Path("~/.openbell")
DEFAULT_SEED = 7
DEFAULT_SCENARIO = "as-of"


def _setting(default: Any, doc: str, *, secret: bool = False) -> Any:
    return field(default=default, metadata={"help": doc}, repr=not secret)


@cache
def _declared() -> dict[str, Option]:
    """Returns the settings that feeds and brokers declare, by name."""
    return {option.name: option for option in declared_options()}


def _defaults() -> dict[str, Any]:
    return {each.name: each.default for each in _declared().values()}


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings. Immutable: every process reads them once."""

    home: Path = _setting(_HOME, "folder of all data and settings")
    feed: str = _setting("sim", "where bars come from: ")
    as_of: str = _setting("", "fix the clock at this time (ISO 8601; no zone means UTC); later data is not used")
    scenario: str = _setting(
        "", "with as_of: the what-if account to act in; as-of if left out and trading is allowed (openbell scenario)"
    )
    replay_speed: float = _setting(0.0, "with as_of: let the clock run from there, at this multiple of real time")
    sim_seed: int = _setting(DEFAULT_SEED, "seed of the simulated market")
    read_only: bool = _setting(
        False,
        "refuse every tool that writes and change nothing in the home; no other setting lifts it (bars of a feed are kept "
        "in a temporary folder; openbell halt works all the same)",
    )
    trade: bool = _setting(False, "allow the trading tools")
    timeout: float = _setting(10.0, "timeout in seconds of one tool call; 0: none")
    stale_after: float = _setting(900.0, "seconds of trading time after which a price is no longer current")
    cache_candles: float = _setting(60.0, "seconds for which results of get_candles are cached")
    cache_price: float = _setting(5.0, "seconds for which results of get_current_price are cached")
    cache_volatility: float = _setting(30.0, "seconds for which results of get_volatility are cached")
    influx_url: str = _setting(
        "", "keep bars in this InfluxDB, such as http://127.0.0.1:8086, instead of Parquet files"
    )
    influx_database: str = _setting("openbell", "its database; simulated bars go to NAME_simulated_SEED")
    influx_token: str = _setting("", "its token, or user:password", secret=True)
    pool_influx_connections: int = _setting(5, "the most connections to InfluxDB")
    pool_influx_idle: float = _setting(60.0, "seconds after which an idle connection to it is closed")
    pool_influx_connect: float = _setting(3.0, "timeout in seconds for connecting to it")
    pool_influx_timeout: float = _setting(5.0, "timeout in seconds for its answers")
    database_url: str = _setting(
        "",
        "keep orders, alerts, decisions and the ledger in this PostgreSQL, such as postgresql://USER:PASSWORD@HOST/NAME, "
        "instead of SQLite in the home",
        secret=True,
    )
    pool_postgres_min: int = _setting(2, "connections to PostgreSQL that are kept")
    pool_postgres_max: int = _setting(10, "the most connections to it")
    pool_postgres_idle: float = _setting(300.0, "seconds after which an idle connection to it is closed")
    pool_postgres_connect: float = _setting(5.0, "timeout in seconds for connecting to it")
    pool_postgres_timeout: float = _setting(10.0, "timeout in seconds for its answers")
    cache_strategies: float = _setting(30.0, "seconds for which results of get_top_strategies are cached")
    cache_signal: float = _setting(10.0, "seconds for which results of get_strategy_signal are cached")
    cache_consensus: float = _setting(30.0, "seconds for which results of get_strategy_consensus are cached")
    cache_specs: float = _setting(60.0, "seconds for which results of get_top_specs are cached")
    cache_implementations: float = _setting(30.0, "seconds for which results of get_implementations are cached")
    cache_performance: float = _setting(300.0, "seconds for which results of get_historical_performance are cached")
    backtest_timeout: float = _setting(300.0, "timeout in seconds of one backtest; 0: none")
    backtester: str = _setting(
        "",
        "run backtests at this gRPC service, such as 127.0.0.1:50051 (openbell backtester), instead of in this process",
    )
    backtester_tls_ca: str = _setting("", "file of the CA that signed its certificate (PEM): connect with TLS")
    backtester_tls_cert: str = _setting("", "file of the certificate to present to it (PEM)")
    backtester_tls_key: str = _setting("", "file of the key of that certificate (PEM)")
    pool_backtester_connections: int = _setting(3, "the most connections to the backtester")
    pool_backtester_connect: float = _setting(3.0, "timeout in seconds for connecting to it")
    pool_backtester_keepalive: float = _setting(30.0, "seconds between pings of a connection to it, at least 1")
    pool_backtester_keepalive_timeout: float = _setting(
        10.0, "seconds after which a connection whose ping is not answered is closed"
    )
    cache_decisions: float = _setting(30.0, "seconds for which results of get_recent_decisions are cached")
    dask: str = _setting(
        "",
        "run sweeps on this Dask scheduler, such as tcp://127.0.0.1:8786, instead of processes; needs openbell[dask]",
    )
    broker: str = _setting("paper", "the broker that carries out orders: ")
    account: str = _setting("", "the account to trade on; the broker's name if left out (openbell account lists them)")
    account_token: str = _setting("", "its token, if it has one", secret=True)
    paper_cash: Decimal = _setting(Decimal(100_000), "starting cash of a new paper account, in USD")
    paper_fee: Decimal = _setting(Decimal("0.001"), "fee on paper, as a share of what is traded")
    paper_slippage: Decimal = _setting(
        Decimal("0.0005"), "how much worse than the price a paper order fills, as a share"
    )
    paper_volume_share: Decimal = _setting(Decimal("0.1"), "share of a bar's volume that paper orders can get")
    risk_order_share: Decimal = _setting(
        Decimal("0.1"), "the most that an order may open, as a share of equity; 0: any"
    )
    risk_symbol_share: Decimal = _setting(Decimal("0.25"), "the same limit for all that is held of a symbol")
    risk_order_notional: Decimal = _setting(Decimal(0), "the most that an order may open, in USD; 0: any")
    risk_symbol_notional: Decimal = _setting(Decimal(0), "the same limit for all that is held of a symbol")
    risk_positions: int = _setting(20, "the most positions at once; 0: any number")
    risk_daily_loss: Decimal = _setting(
        Decimal("0.05"), "loss since 00:00 UTC, as a share of equity, after which nothing is opened; 0: never"
    )
    risk_leverage: Decimal = _setting(Decimal(1), "how many times equity all positions may be worth")
    risk_collar: Decimal = _setting(
        Decimal("0.05"), "how far an order's price may be from the last bar's close, as a share; 0: any distance"
    )
    risk_short: bool = _setting(
        False, "allow orders that sell more than is held, of stocks and forex; spot crypto is never sold short"
    )
    risk_symbols: str = _setting("", "the only symbols that may be opened, separated by commas; none: all")
    host: str = _setting("127.0.0.1", "the address that the gateway listens on")
    port: int = _setting(8742, "its port; 0: any free one")
    public_url: str = _setting(
        "", "the address of the TLS proxy in front of the gateway, such as https://desk.example.com"
    )
    allowed_hosts: str = _setting(
        "",
        "other values of Host that are accepted, exactly as clients send them, such as desk.lan:8742,192.168.1.5:8742",
    )
    allowed_origins: str = _setting(
        "", "other values of Origin that are accepted, exactly as browsers send them, such as https://app.example.com"
    )
    trusted_proxies: str = _setting(
        "127.0.0.1,::1", "with public_url: addresses of proxies whose X-Forwarded-For and X-Forwarded-Proto are used"
    )
    open_reading: bool = _setting(False, "let clients on this machine read without a token, as the operator")
    chart_signals_http: bool = _setting(False, "serve chart-signals over HTTP too; its contract has stdio only")
    metrics: bool = _setting(
        False, "serve metrics for Prometheus on /metrics, to this machine and to tokens with scope admin"
    )
    rate_read: int = _setting(1200, "calls of reading tools per minute and principal; 0: any number")
    burst_read: int = _setting(200, "how many of these may come at once")
    rate_trade: int = _setting(120, "calls of trading tools per minute and principal; 0: any number")
    burst_trade: int = _setting(30, "how many of these may come at once")
    rate_admin: int = _setting(60, "calls of administrative tools per minute and principal; 0: any number")
    burst_admin: int = _setting(20, "how many of these may come at once")
    rate_signin: int = _setting(10, "attempts to sign in per minute and address; 0: any number")
    burst_signin: int = _setting(5, "how many of these may come at once")
    max_requests: int = _setting(256, "requests that the gateway works on at once; more are answered with 503")
    max_requests_each: int = _setting(64, "the same limit for one principal; more are answered with 429")
    body_limit: int = _setting(1_048_576, "the most bytes of a request's body")
    body_timeout: float = _setting(15.0, "seconds in which the whole body of a request must arrive")
    rate_quotes: int = _setting(60, "requests of the quotes API per minute and principal; 0: any number")
    rate_quotes_live: int = _setting(60, "how many of these may be for live quotes; 0: any number")
    rate_quotes_historical: int = _setting(30, "how many of these may be for historical bars; 0: any number")
    rate_health: int = _setting(120, "requests of /healthz per minute and address; 0: any number")
    rate_metadata: int = _setting(30, "requests of /v2/openapi.json per minute and address; 0: any number")
    arche_url: str = _setting(
        "",
        "the quotes API that the server arche asks, such as https://quotes.example.com; this desk's own if left out",
    )
    arche_key: str = _setting("", "its key, sent as X-Api-Key", secret=True)
    pool_arche_connect: float = _setting(3.0, "timeout in seconds for connecting to it")
    pool_arche_timeout: float = _setting(8.0, "timeout in seconds for its answers")
    chart_img_url: str = _setting(
        "https://api.chart-img.com",
        "the API that draws chart images if CHART_IMG_API_KEY is set; this desk draws without",
    )
    chart_img_docs_url: str = _setting("https://doc.chart-img.com", "the page of its documentation")
    chart_img_plan: str = _setting(
        "BASIC", "the plan of the key, whose limits are kept: BASIC, PRO, MEGA, ULTRA or ENTERPRISE"
    )
    chart_api_plan: str = _setting(
        "ENTERPRISE",
        "the plan whose limits each client of the gateway's chart API has: BASIC, PRO, MEGA, ULTRA or ENTERPRISE",
    )
    chart_images_mb: int = _setting(512, "the most megabytes of stored chart images in the home")
    pool_chart_img_connect: float = _setting(3.0, "timeout in seconds for connecting to both")
    pool_chart_img_timeout: float = _setting(20.0, "timeout in seconds for their answers, including all retries")
    underscore_names: bool = _setting(
        False, "offer tools with dots in their names also with underscores, such as quotes_live"
    )
    webhook_origins: str = _setting(
        "",
        "origins to which webhooks may be sent without TLS and in private networks, such as http://127.0.0.1:9000, "
        "separated by commas; all others need https and public addresses",
    )
    log_level: str = _setting("warning", "level of the log on standard error: debug, info, warning, error")
    log_levels: str = _setting(
        "", "other levels for single rooms (folders of the source), such as feeds=debug,trading=info"
    )
    log_format: str = _setting("text", "form of its lines, one for each event, times in UTC: text, json")
    options: Mapping[str, Any] = field(default_factory=_defaults)
    """The values of settings that feeds and brokers declare, by name."""

    @property
    def simulated(self) -> bool:
        """Whether the feed is the simulator."""
        return feed_of(self.feed).origin is Origin.SIMULATED

    @property
    def bar_folder(self) -> Path:
        """The folder of bars. Simulated bars have a folder of their own, so that they are never served as real ones.

        If bars are in InfluxDB, the folder holds new bars until they are copied there, and metadata.
        """
        if not self.influx_url:
            return self.market_folder / "data"
        place = f"{self.influx_url.rstrip('/')} {self.influx_database}"
        return self.market_folder / f"influx/{crc32(place.encode()):08x}"

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
    def paper_costs(self) -> tuple[float, float]:
        """Fee and slippage on paper, as shares: what strategies are judged by."""
        return float(self.paper_fee), float(self.paper_slippage)

    @property
    def trusted_origins(self) -> frozenset[str]:
        """The origins of `webhook_origins` in their normal form. Raises `InvalidParameter`."""
        return frozenset(parse_origin(each.strip()) for each in self.webhook_origins.split(",") if each.strip())

    @property
    def by_name(self) -> dict[str, Any]:
        """All settings by name, for feeds and brokers."""
        return {each.name: getattr(self, each.name) for each in _own()} | dict(self.options)

    @property
    def watchlist_file(self) -> Path:
        """The file of watched symbols."""
        return self.home / "watchlist.txt"


@cache
def _own() -> tuple[Field[Any], ...]:
    """Returns the settings that are fields of `Settings`."""
    return tuple(each for each in fields(Settings) if "help" in each.metadata)


@cache
def names() -> dict[str, tuple[str, Any, str]]:
    """Returns variable, default and help text of each setting."""
    lists = {
        "feed": ", ".join(f"{kind.shown} ({kind.help})" for kind in all_feeds().values())
        + ", or one for each asset class, such as stocks=alpaca,crypto=ccxt:kraken",
        "broker": ", ".join(f"{kind.name} ({kind.help})" for kind in all_brokers().values()),
    }
    own = {each.name: (each.default, each.metadata["help"] + lists.get(each.name, "")) for each in _own()}
    declared = {option.name: (option.default, option.help) for option in _declared().values()}
    return {name: (PREFIX + name.upper(), *rest) for name, rest in (own | declared).items()}


def load(environ: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
    """Returns the settings of file and environment; `overrides` (command-line flags) win. Raises `SettingsError`."""
    env = os.environ if environ is None else environ
    home = _home(overrides.get("home") or env.get(PREFIX + "HOME") or _HOME)
    flags = {name: value for name, value in overrides.items() if value is not None}
    file, environment = read_file(home / NAME, names()), _from_environment(env)
    with file.keys_named(set(file.values)):
        stored = _typed(file.values)
    with file.keys_named(file.values.keys() - environment.keys() - flags.keys()):
        return _settings(home, [stored, _typed(environment), _typed(flags)])


def unknown_variables(environ: Mapping[str, str]) -> str | None:
    """Returns a warning that names the OPENBELL_ variables that are no settings, without their values; None if all are."""
    known = {variable for variable, _, _ in names().values()}
    found = sorted(each for each in environ if each.startswith(PREFIX) and each not in known)
    shown = "; ".join(
        f"{each[:80]} is not a setting and is ignored{did_you_mean(each, known, 0.8)}" for each in found[:8]
    )
    return shown or None


def _typed(layer: Mapping[str, Any]) -> dict[str, Any]:
    return {name: typed(*names()[name][:2], value) for name, value in layer.items()}


def _settings(home: Path, read: Sequence[Mapping[str, Any]]) -> Settings:
    """Returns the settings of layers, of which later ones win."""
    values: dict[str, Any] = {name: value for layer in read for name, value in layer.items()}
    values["home"] = home
    # The one setting that a later layer cannot switch off.
    values["read_only"] = any(layer.get("read_only", False) for layer in read)
    options = {name: values.pop(name, option.default) for name, option in _declared().items()}
    settings = Settings(**values, options=options)
    check(settings)
    return settings


def home_of(environ: Mapping[str, str]) -> Path:
    """Returns the home without reading any other setting. Raises `SettingsError`."""
    return _home(environ.get(PREFIX + "HOME") or _HOME)


def _home(path: str | Path) -> Path:
    try:
        return Path(path).expanduser().absolute()
    except RuntimeError as error:
        raise SettingsError(f"OPENBELL_HOME is {str(path)!r}: {error}") from None


def _from_environment(env: Mapping[str, str]) -> dict[str, Any]:
    found = {name: env.get(variable, "") for name, (variable, _, _) in names().items()}
    return {name: value for name, value in found.items() if value != ""}
