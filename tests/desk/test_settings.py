"""Settings: variables override the file, flags override both; invalid values are refused."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from openbell.brokers.registry import all_brokers
from openbell.desk.settings import Settings, all_settings, load
from openbell.feeds.registry import all_feeds
from openbell.market.errors import Refused, SettingsError


class Home:
    """A home to write an openbell.toml into and load from."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self, toml: str | bytes = "", flags: dict[str, Any] | None = None, **variables: str) -> Settings:
        data = toml if isinstance(toml, bytes) else toml.encode()
        (self.path / "openbell.toml").write_bytes(data)
        env = {"OPENBELL_HOME": str(self.path)} | {f"OPENBELL_{name.upper()}": v for name, v in variables.items()}
        return load(env, **(flags or {}))

    def refused(self, says: str, toml: str | bytes = "", **variables: str) -> None:
        with pytest.raises(SettingsError, match=says):
            self.load(toml, None, **variables)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


class TestWhereTheyComeFrom:
    def test_without_anything_the_defaults(self, tmp_path: Path) -> None:
        settings = load({"OPENBELL_HOME": str(tmp_path)})

        assert settings == Settings(home=tmp_path)
        assert (settings.feed, settings.as_of, settings.replay_speed) == ("sim", "", 0.0)
        assert (settings.read_only, settings.trade) == (False, False)

    def test_the_file_is_read(self, home: Home) -> None:
        settings = home.load('feed = "none"\nread_only = true\nsim_seed = 11\nas_of = "2025-09-19T19:00:00Z"')

        assert (settings.feed, settings.read_only, settings.sim_seed) == ("none", True, 11)
        assert settings.as_of == "2025-09-19T19:00:00Z"

    def test_the_variable_wins_over_the_file(self, home: Home) -> None:
        settings = home.load('feed = "none"\nsim_seed = 11\nlog_level = "debug"', feed="replay", sim_seed="12")

        assert (settings.feed, settings.sim_seed, settings.log_level) == ("replay", 12, "debug")

    def test_the_flag_wins_over_both(self, home: Home) -> None:
        settings = home.load('feed = "none"', {"feed": "sim", "trade": True, "as_of": None}, feed="replay")

        assert (settings.feed, settings.trade, settings.as_of) == ("sim", True, "")

    def test_an_empty_variable_is_as_good_as_none(self, home: Home) -> None:
        assert home.load('feed = "none"', feed="").feed == "none"

    def test_variables_of_others_are_left_alone(self, tmp_path: Path) -> None:
        env = {"OPENBELL_HOME": str(tmp_path), "HOME": "/x", "FEED": "nonsense", "ALPACA_API_KEY": "secret"}

        assert load(env) == Settings(home=tmp_path)

    def test_the_environment_of_the_process_is_the_default(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENBELL_HOME", str(tmp_path))
        monkeypatch.setenv("OPENBELL_FEED", "none")

        assert load() == Settings(home=tmp_path, feed="none")

    def test_they_do_not_change(self, home: Home) -> None:
        with pytest.raises(FrozenInstanceError):
            home.load().feed = "none"  # type: ignore[misc]


class TestHome:
    def test_a_tilde_is_the_users_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))

        assert load({}).home == tmp_path / ".openbell"
        assert load({"OPENBELL_HOME": "~/desk"}).home == tmp_path / "desk"
        assert load({}, home=Path("~/flag")).home == tmp_path / "flag"

    def test_a_relative_path_is_made_absolute(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)

        assert load({"OPENBELL_HOME": "desk"}).home == tmp_path / "desk"

    def test_the_file_of_the_chosen_home_counts(self, tmp_path: Path) -> None:
        (tmp_path / "openbell.toml").write_text('feed = "none"')

        assert load({"OPENBELL_HOME": "/nowhere"}, home=tmp_path).feed == "none"

    def test_the_file_cannot_say_where_it_lies(self, home: Home) -> None:
        home.refused("home", 'home = "/elsewhere"')

    def test_and_the_refusal_helps(self, home: Home) -> None:
        home.refused("OPENBELL_HOME", 'home = "/elsewhere"')

    def test_a_user_that_does_not_exist_is_refused(self) -> None:
        with pytest.raises(SettingsError):
            load({"OPENBELL_HOME": "~no-such-user-here/x"})


class TestFolders:
    def test_simulated_bars_live_apart(self, home: Home) -> None:
        assert home.load().bar_folder == home.path / "simulated" / "data"
        for feed in ("none", "replay"):
            assert home.load(feed=feed).bar_folder == home.path / "data"

    def test_another_seed_is_another_market(self, home: Home) -> None:
        folders = {home.load(sim_seed=seed).bar_folder for seed in ("1", "2", "7")}

        assert len(folders) == 3
        assert all(home.path / "simulated" in folder.parents for folder in folders)

    def test_the_watchlist_lies_in_the_home(self, home: Home) -> None:
        assert home.load().watchlist_file == home.path / "watchlist.txt"


class TestRefusals:
    @pytest.mark.parametrize(
        ("written", "meant"),
        [("fed", "feed"), ("readonly", "read_only"), ("asof", "as_of"), ("replayspeed", "replay_speed")],
    )
    def test_an_unknown_setting_is_named_with_the_nearest(self, home: Home, written: str, meant: str) -> None:
        home.refused(f"unknown setting '{written}'; did you mean '{meant}'", f'{written} = "x"')

    def test_one_like_no_other_is_named_alone(self, home: Home) -> None:
        home.refused("unknown setting 'qqqqqq'$", "qqqqqq = 1")

    def test_the_file_is_named(self, home: Home) -> None:
        home.refused(r"openbell\.toml", "qqqqqq = 1")

    @pytest.mark.parametrize("toml", ["feed = ", "feed == 'sim'", "[", b"feed = '\xff'", "feed = 'sim'\nfeed = 'none'"])
    def test_a_file_that_is_no_toml(self, home: Home, toml: str | bytes) -> None:
        home.refused(r"cannot read .*openbell\.toml", toml)

    def test_a_file_that_is_a_folder(self, tmp_path: Path) -> None:
        (tmp_path / "openbell.toml").mkdir()

        with pytest.raises(SettingsError, match="cannot read"):
            load({"OPENBELL_HOME": str(tmp_path)})

    @pytest.mark.parametrize("feed", ["SIM", "nasdaq", "sim ", "../x"])
    def test_a_feed_that_is_none(self, home: Home, feed: str) -> None:
        home.refused("OPENBELL_FEED .*sim", feed=feed)

    @pytest.mark.parametrize("value", ["maybe", "2", "yes please", "-1"])
    def test_a_flag_that_is_neither(self, home: Home, value: str) -> None:
        home.refused("OPENBELL_READ_ONLY must be true or false", read_only=value)

    @pytest.mark.parametrize(
        ("text", "value"),
        [("1", True), ("TRUE", True), (" yes ", True), ("on", True), ("0", False), ("No", False), ("off", False)],
    )
    def test_a_flag_in_the_words_people_use(self, home: Home, text: str, value: bool) -> None:
        assert home.load(read_only=text).read_only is value

    @pytest.mark.parametrize("value", ["fast", "1,5", "0x10", "--1"])
    def test_a_number_that_is_none(self, home: Home, value: str) -> None:
        home.refused("OPENBELL_REPLAY_SPEED must be a (whole )?number", replay_speed=value, as_of="2025-01-01")
        home.refused("OPENBELL_SIM_SEED must be a (whole )?number", sim_seed=value)

    @pytest.mark.parametrize("toml", ["sim_seed = []", "sim_seed = {}", "sim_seed = 2025-01-01", "replay_speed = []"])
    def test_a_value_of_another_kind(self, home: Home, toml: str) -> None:
        home.refused("must be a (whole )?number", toml)

    @pytest.mark.parametrize("toml", ["sim_seed = 7.9", "sim_seed = true", "sim_seed = inf"])
    def test_a_seed_that_is_no_whole_number(self, home: Home, toml: str) -> None:
        home.refused(r"openbell\.toml, line 1: sim_seed must be", toml)

    @pytest.mark.parametrize("value", ["-1", "1e7", "nan", "inf"])
    def test_a_speed_out_of_bounds(self, home: Home, value: str) -> None:
        home.refused("OPENBELL_REPLAY_SPEED", replay_speed=value, as_of="2025-01-01")

    @pytest.mark.parametrize(
        "name",
        [
            each.name
            for each in all_settings().values()
            if isinstance(each.default, int | float | Decimal)
            and not isinstance(each.default, bool)
            and each.name != "sim_seed"
        ],
    )
    def test_every_number_has_bounds(self, home: Home, name: str) -> None:
        whole = isinstance(all_settings()[name].default, int)
        for value in ("-1", "9" * 30) if whole else ("-1", "9e30", "nan"):
            home.refused(f"OPENBELL_{name.upper()} must be", "", **{name: value})

    def test_a_speed_needs_a_time_to_begin_at(self, home: Home) -> None:
        home.refused("OPENBELL_REPLAY_SPEED needs OPENBELL_AS_OF", replay_speed="60")
        assert home.load(replay_speed="60", as_of="2025-01-01").replay_speed == 60.0

    @pytest.mark.parametrize("value", ["yesterday", "2025-13-01", "1758308340000"])
    def test_a_time_that_is_none(self, home: Home, value: str) -> None:
        home.refused("OPENBELL_AS_OF.*ISO 8601", as_of=value)

    def test_a_time_in_tomls_own_form(self, home: Home) -> None:
        settings = home.load("as_of = 2025-09-19T19:00:00Z")

        assert settings.as_of.startswith("2025-09-19")

    def test_a_log_level_that_is_none(self, home: Home) -> None:
        home.refused("OPENBELL_LOG_LEVEL", log_level="loud")
        assert home.load(log_level="INFO").log_level.lower() == "info"

    def test_a_refusal_is_a_refusal(self) -> None:
        assert issubclass(SettingsError, Refused)


class TestDocumented:
    def test_every_setting_has_a_variable_a_default_and_a_help_text(self) -> None:
        table = all_settings()

        options = [option for kind in all_feeds().values() for option in kind.options]
        options += [option for kind in all_brokers().values() for option in kind.options]
        defaults = {field.name: field.default for field in fields(Settings) if field.name != "options"}
        defaults |= {option.name: option.default for option in options}
        assert list(table) == list(defaults)
        for name, each in table.items():
            assert each.variable == f"OPENBELL_{name.upper()}"
            assert each.default == defaults[name]
            assert len(each.help) >= 15, name

    def test_every_variable_is_read(self, tmp_path: Path) -> None:
        values = {
            "home": str(tmp_path),
            "feed": "none",
            "as_of": "2025-01-01",
            "replay_speed": "2.5",
            "sim_seed": "3",
            "read_only": "1",
            "trade": "1",
            "log_level": "info",
        }
        assert set(values) <= set(all_settings())

        settings = load({all_settings()[name].variable: value for name, value in values.items()})

        assert settings == Settings(
            home=tmp_path,
            feed="none",
            as_of="2025-01-01",
            replay_speed=2.5,
            sim_seed=3,
            read_only=True,
            trade=True,
            log_level="info",
        )

    def test_the_help_names_every_feed(self) -> None:
        assert all(kind.shown in all_settings()["feed"].help for kind in all_feeds().values())


class TestReadOnly:
    def test_nothing_lifts_it(self, home: Home) -> None:
        assert home.load("read_only = true", read_only="0").read_only is True
        assert home.load("read_only = false", read_only="1").read_only is True
        assert home.load().read_only is False


class TestConnections:
    @pytest.mark.parametrize("feed", ["alpaca", "ccxt:binance", "ccxt:kraken", "none"])
    def test_live_feeds_are_known_by_name(self, home: Home, feed: str) -> None:
        assert home.load(FEED=feed).feed == feed

    @pytest.mark.parametrize("feed", ["ccxt", "ccxt:", "ccxt:Binance!", "ccxt:EXCHANGE", "alpaca2"])
    def test_a_feed_without_a_place_is_refused(self, home: Home, feed: str) -> None:
        with pytest.raises(SettingsError, match="OPENBELL_FEED"):
            home.load(FEED=feed)

    def test_a_token_is_never_shown(self, home: Home) -> None:
        settings = home.load(INFLUX_TOKEN="hush")
        assert settings.influx_token == "hush"
        assert "hush" not in repr(settings)

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("INFLUX_URL", "ftp://x"),
            ("INFLUX_URL", "http://user:password@host"),
            ("INFLUX_URL", "http://127.0.0.1:notaport"),
            ("INFLUX_URL", "http://127.0.0.1:8086/?u=desk&p=hunter2"),
            ("INFLUX_URL", "http://127.0.0.1:8086/#hunter2"),
            ("INFLUX_URL", "http://☃"),
            ("INFLUX_TOKEN", "password@\n"),
            ("INFLUX_TOKEN", "password@ t\u00f6k"),
            ("INFLUX_DATABASE", 'a"; DROP'),
            ("POOL_INFLUX_CONNECTIONS", "0"),
            ("POOL_INFLUX_TIMEOUT", "0"),
            ("BACKTESTER", "127.0.0.1:99999"),
            ("BACKTESTER", "[::1]:0"),
            ("CACHE_CANDLES", "-1"),
            ("TIMEOUT", "nan"),
            ("ALPACA_FEED", "otc"),
            ("ALPACA_ADJUSTMENT", "some"),
        ],
    )
    def test_values_that_cannot_work_are_refused_by_name(self, home: Home, name: str, value: str) -> None:
        with pytest.raises(SettingsError, match=f"OPENBELL_{name}") as caught:
            home.load("", None, **{name: value})
        assert "password@" not in str(caught.value)

    def test_each_database_has_a_buffer_of_its_own(self, home: Home) -> None:
        one = home.load(INFLUX_URL="http://127.0.0.1:8086")
        other = home.load(INFLUX_URL="http://127.0.0.1:8087")
        assert len({one.bar_folder, other.bar_folder, home.load().bar_folder}) == 3
        assert home.load(INFLUX_URL="http://127.0.0.1:8086/").bar_folder == one.bar_folder


class TestGateway:
    def test_it_listens_on_this_machine_only(self, home: Home) -> None:
        settings = home.load()
        assert (settings.host, settings.port, settings.public_url, settings.metrics) == ("127.0.0.1", 8742, "", False)

    @pytest.mark.parametrize("url", ["https://desk.example.com", "https://10.0.0.5:8443", "http://localhost:8742"])
    def test_a_public_url_is_https_or_on_this_machine(self, home: Home, url: str) -> None:
        assert home.load(public_url=url).public_url == url

    @pytest.mark.parametrize("url", ["http://desk.example.com", "http://10.0.0.5:8742", "http://localhost.example.com"])
    def test_a_public_url_over_http_is_refused(self, home: Home, url: str) -> None:
        home.refused("OPENBELL_PUBLIC_URL .*use https", public_url=url)

    def test_the_key_of_a_quotes_api_is_not_sent_without_tls(self, home: Home) -> None:
        for url in ("https://quotes.example.com/api", "http://127.0.0.1:9", "http://[::1]:9", ""):
            assert home.load(arche_url=url, arche_key="k").arche_url == url
        assert "k-e-y" not in repr(home.load(arche_key="k-e-y"))
        home.refused("OPENBELL_ARCHE_KEY can be read", arche_url="http://quotes.example.com", arche_key="k")
        for url in (
            "ftp://x",
            "https://user:pass@x.example",
            "https://x.example?a=1",
            "https://x.example:99999999",
            "x",
        ):
            home.refused("OPENBELL_ARCHE_URL", arche_url=url)
        home.refused("OPENBELL_ARCHE_KEY holds characters", arche_key="a b")

    def test_the_key_of_chart_images_is_not_sent_without_tls(self, home: Home) -> None:
        assert home.load().chart_img_url == "https://api.chart-img.com"
        assert home.load().chart_img_docs_url == "https://doc.chart-img.com"
        for url in ("https://charts.example.com/api", "http://127.0.0.1:9", "http://[::1]:9", "http://localhost:8742"):
            assert home.load(chart_img_url=url, chart_img_docs_url=url).chart_img_url == url
        home.refused("CHART_IMG_API_KEY can be read", chart_img_url="http://charts.example.com")
        home.refused("OPENBELL_CHART_IMG_DOCS_URL.*use https", chart_img_docs_url="http://docs.example.com")
        for url in (
            "ftp://x",
            "https://user:pass@x.example",
            "https://x.example?a=1",
            "https://x.example:99999999",
            "x",
        ):
            home.refused("OPENBELL_CHART_IMG_URL", chart_img_url=url)
            home.refused("OPENBELL_CHART_IMG_DOCS_URL", chart_img_docs_url=url)

    def test_a_plan_of_chart_images_is_one_that_the_vendor_has(self, home: Home) -> None:
        assert home.load().chart_img_plan == "BASIC"
        assert home.load(chart_img_plan="mega").chart_img_plan == "mega"
        home.refused("OPENBELL_CHART_IMG_PLAN is 'GOLD': use basic, pro", chart_img_plan="GOLD")
        home.refused("OPENBELL_POOL_CHART_IMG_TIMEOUT", pool_chart_img_timeout="0")

    @pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "desk.lan"])
    def test_other_machines_need_a_proxy_or_the_name_they_use(self, home: Home, host: str) -> None:
        home.refused("TLS proxy .*OPENBELL_PUBLIC_URL.*OPENBELL_ALLOWED_HOSTS", host=host)
        assert home.load(host=host, public_url="https://desk.example.com").host == host
        assert home.load(host=host, allowed_hosts="desk.lan:8742").host == host

    @pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
    def test_this_machine_needs_neither(self, home: Home, host: str) -> None:
        assert home.load(host=host).host == host

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("HOST", "127.0.0.1:8742"),
            ("HOST", "user@host"),
            ("PORT", "65536"),
            ("PORT", "-1"),
            ("PUBLIC_URL", "https://desk.example.com/desk"),
            ("PUBLIC_URL", "https://desk.example.com/"),
            ("PUBLIC_URL", "https://user:word@desk.example.com"),
            ("PUBLIC_URL", "ftp://desk.example.com"),
            ("PUBLIC_URL", "https://desk.example.com:99999"),
            ("ALLOWED_HOSTS", "*"),
            ("ALLOWED_HOSTS", "http://desk.lan"),
            ("ALLOWED_HOSTS", "desk.lan,,"),
            ("ALLOWED_ORIGINS", "*"),
            ("ALLOWED_ORIGINS", "null"),
            ("ALLOWED_ORIGINS", "https://app.example.com/"),
            ("TRUSTED_PROXIES", "proxy.example.com"),
            ("TRUSTED_PROXIES", "10.0.0.0/99"),
            ("RATE_READ", "-1"),
            ("BURST_TRADE", "0"),
            ("MAX_REQUESTS", "0"),
            ("BODY_LIMIT", "10"),
            ("BODY_TIMEOUT", "0"),
            ("BODY_TIMEOUT", "nan"),
        ],
    )
    def test_values_that_cannot_work_are_refused_by_name(self, home: Home, name: str, value: str) -> None:
        home.refused(f"OPENBELL_{name}", "", **{name: value})
