"""Every command that the app has, found by walking the app: it explains itself, and it works in a new home."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from openbell.cli.commands import app
from tests.client import OPENBELL, PATIENCE, Client, environment, run
from tests.prefork import SEARCHES, Process

Words = tuple[str, ...]
AT = ("--as-of", "2026-03-02T15:00:00Z")


def walk(command: object, words: Words = ()) -> Iterator[tuple[Words, object]]:
    """Every group and command, with the words that call it."""
    yield words, command
    for name, each in getattr(command, "commands", {}).items():
        yield from walk(each, (*words, name))


EVERY = dict(walk(typer.main.get_command(app)))
COMMANDS = [" ".join(words) for words, command in EVERY.items() if not hasattr(command, "commands")]


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_it_explains_itself_and_every_option(tmp_path: Path, words: Words) -> None:
    command = EVERY[words]
    for flag in ("--help", "-h"):
        done = CliRunner().invoke(app, [*words, flag], env={"OPENBELL_HOME": str(tmp_path)})
        assert done.exit_code == 0, done.output
        shown = " ".join(done.stdout.split())
        assert command.help.splitlines()[0] in shown  # type: ignore[attr-defined]
        for parameter in command.params:  # type: ignore[attr-defined]
            assert parameter.help, f"{parameter.name} has no help text"
            assert parameter.help in shown, parameter.name
    assert list(tmp_path.iterdir()) == [], "help changes nothing"


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_no_help_text_is_cut_at_80_columns(words: Words) -> None:
    shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "80"}).stdout
    usage, _, rest = shown.partition("\n\n")
    assert usage.startswith("Usage: openbell")
    assert not [line for line in rest.splitlines() if line.rstrip().endswith(("...", "…"))]
    for name, command in getattr(EVERY[words], "commands", {}).items():
        (told,) = re.findall(rf"^  {name}  +(.*(?:\n    .*)*)", rest, re.MULTILINE)
        whole, sentence = " ".join(told.split()), " ".join(command.help.split("\n\n")[0].split())
        assert sentence.startswith(whole)
        assert sentence == whole or whole.endswith("."), f"{name}: {whole}"


# What each command does, in a home in which nothing has been done before


def done(home: Path, *words: str, code: int = 0, **settings: str) -> str:
    """The standard output of a command that ends with this code."""
    ended = run(home, *words, **settings)
    assert ended.returncode == code, ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr
    return ended.stdout


def first_line(home: Path, *words: str, containing: str = "", searches: bool = False, **settings: str) -> str:
    """The first such line of a command that runs until it is interrupted, and then ends without an error."""
    pipe = subprocess.PIPE
    with Process(
        [*OPENBELL, *words],
        env={**environment(home, **settings), **({SEARCHES: "1"} if searches else {})},
        text=True,
        stdout=pipe,
        stderr=pipe,
    ) as process:
        try:
            assert process.stdout
            found: str | None = next((line for line in process.stdout if containing in line), None)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=PATIENCE)
        except BaseException:
            process.kill()
            raise
    assert process.returncode == 0, errors
    assert found is not None, errors
    return found


def runs_up(home: Path) -> None:
    assert "22 symbols" in first_line(home, "up", containing="collecting")
    searching = first_line(home, "up", containing="strategies: searching", searches=True)
    assert re.search(r": \d+ of 44 series done\n$", searching)


def test_up_prints_what_its_search_has_found(tmp_path: Path) -> None:
    """The series have too few bars for a search, so that it ends at once."""
    words = ("up", "--watch", "BTC/USD")
    file = tmp_path / "bars.csv"
    file.write_text("time,open,high,low,close,volume\n2025-01-01,1,2,1,2,9\n2025-01-02,2,2,1,1,8\n")
    done(tmp_path / "home", "import", str(file), "--symbol", "BTC/USD", FEED="none")
    line = first_line(tmp_path / "home", *words, containing="validated", searches=True, FEED="none")
    assert line == (
        "openbell: strategies: all watched series are searched; 0 validated and 0 deployed strategies, shown by: openbell "
        """call strategy get_top_strategies '{"symbol": "BTC/USD"}'\n"""
    )


def runs_collect(home: Path) -> None:
    # A minute each second: nothing waits for the next minute of the machine's clock.
    line = first_line(home, "collect", AS_OF="2026-03-02T15:00:00Z", REPLAY_SPEED="60")
    assert set(json.loads(line)) == {"stored", "through"}


def runs_mcp(home: Path) -> None:
    with Client(home) as client:
        assert client.initialize()["serverInfo"]["name"]
        assert client.end_input() == []
        assert client.process.wait(PATIENCE) == 0


def runs_call(home: Path) -> None:
    assert json.loads(done(home, "call", "chart-signals", "check_market_status"))["crypto"]["open"] is True


def runs_import(home: Path) -> None:
    file = home / "bars.csv"
    home.mkdir()
    file.write_text(
        "timestamp,open,high,low,close,volume\n2025-09-19T13:30:00Z,1,2,1,2,9\n2025-09-19T13:31:00Z,2,2,1,1,8\n"
    )
    assert done(home, "import", str(file), "--symbol", "AAPL").startswith("imported 2 bars of AAPL")


def runs_chart(home: Path) -> None:
    home.mkdir()
    picture = home / "chart.svg"
    done(home, "chart", "BTC/USD", "-n", "20", "-i", "rsi", "--timezone", "asia/tokyo", "-o", str(picture))
    assert picture.read_text().startswith("<svg")
    assert re.search(r">\d+ \w{3} 20\d\d \d\d:\d\d · Tokyo<", picture.read_text())


def runs_indicators(home: Path) -> None:
    assert "rsi (in a panel)" in done(home, "indicators")


def runs_backtest(home: Path) -> None:
    words = ("backtest", "SMA_EMA_CROSSOVER", "BTC/USD", "--from", "2024", "--to", "2026-03", *AT)
    shown = done(home, *words)
    assert "790 simulated bars from 2024-01-01T00:00:00+00:00 to 2026-02-28T00:00:00+00:00" in shown
    assert "Sharpe" in shown
    assert done(home, *words) == shown, "the same request has the same answer"
    assert len(done(home, *words, "--trades").splitlines()) > len(shown.splitlines())
    assert "equity.svg: " in done(home, *words, "-o", str(home / "equity.svg"), "--report", str(home / "report.html"))
    assert (home / "equity.svg").read_text().startswith("<svg")
    assert (home / "report.html").read_text().startswith("<!doctype html>")
    assert done(home, "backtest", "SMA_EMA_CROSSOVER", "NOPE", *AT, code=1) == ""


def runs_backtester(home: Path) -> None:
    line = first_line(home, "backtester", "--port", "0", "--workers", "1")
    assert re.fullmatch(r"backtester listens on 127\.0\.0\.1:\d+ \(1 worker, no TLS\)\n", line)
    assert not home.exists(), "it keeps nothing"


def runs_sweep(home: Path) -> None:
    home.mkdir()
    table = home / "table.csv"
    words = ("sweep", "SMA_EMA_CROSSOVER", "BTC/USD", "--from", "2024", "--to", "2026-03", "-o", str(table), *AT)
    values = ("--set", "emaPeriod=5..20:5", "--set", "smaPeriod=30,50")
    shown = done(home, *words, *values, "--top", "3")
    assert "790 simulated bars from 2024-01-01T00:00:00+00:00 to 2026-02-28T00:00:00+00:00" in shown
    assert "\n8 combinations were tried. The best 3 by sharpe:\n" in shown
    assert "(deflated Sharpe ratio)" in shown
    assert "The bars are simulated, not real prices." in shown
    lines = table.read_text().splitlines()
    assert (len(lines), lines[0]) == (10, "# simulated by Openbell, not real prices")
    assert lines[1].startswith("emaPeriod,smaPeriod,total_return,")
    assert done(home, *words, *values, "--top", "3") == shown, "the same request has the same answer"
    page = home / "best.html"
    assert f"{page}: " in done(home, *words, *values, "--report", str(page))
    assert "(deflated Sharpe ratio)" in page.read_text()
    assert done(home, "sweep", "SMA_EMA_CROSSOVER", "BTC/USD", "--set", "smaPeriod=1", *AT, code=1) == ""


def runs_strategies_list(home: Path) -> None:
    lines = done(home, "strategies", "list").splitlines()
    assert len(lines) == 60
    assert any(line.startswith("MACD_CROSSOVER") for line in lines)


def runs_strategies_show(home: Path) -> None:
    assert done(home, "strategies", "show", "macd_crossover").startswith("name: MACD_CROSSOVER\n")
    assert done(home, "strategies", "show", "macd", code=1) == ""


def runs_strategies_check(home: Path) -> None:
    home.mkdir()
    text = done(home, "strategies", "show", "RVI")
    good, bad = home / "good.yaml", home / "bad.yaml"
    good.write_text(text)
    bad.write_text(text.replace("CROSSED_UP", "CROSSES_UP"))
    assert "RVI is valid" in done(home, "strategies", "check", str(good))
    shown = done(home, "strategies", "check", str(good), str(bad), code=1)
    assert "bad.yaml: entryConditions[0].type: no condition 'CROSSES_UP'; did you mean 'CROSSED_UP'?" in shown


def runs_strategies_submit(home: Path) -> None:
    home.mkdir()
    file = home / "mine.yaml"
    file.write_text(done(home, "strategies", "show", "RVI").replace("name: RVI", "name: MY_RVI"))
    assert done(home, "strategies", "submit", str(file)).startswith("MY_RVI is submitted as spec_")
    assert done(home, "strategies", "submit", str(file), code=1) == "", "a name can be used once"


def runs_account_list(home: Path) -> None:
    assert "the first order creates the default account" in done(home, "account", "list")


def runs_account_add(home: Path) -> None:
    assert "added the account one" in done(home, "account", "add", "one", "--cash", "5,000")
    headings, row = done(home, "account", "list").splitlines()
    assert headings.split() == "account broker equity cash day's P&L positions protection created".split()
    assert row.split()[:6] == ["one", "paper", "5,000.00", "5,000.00", "0.00", "0"]
    at = headings.index("cash") + len("cash")
    assert row[:at].endswith(" 5,000.00"), "numbers end below their heading"


def runs_account_token(home: Path) -> None:
    done(home, "account", "add", "one")
    secret = done(home, "account", "token", "one").splitlines()[-1]
    positions = ("call", "portfolio", "get_positions")
    for token, wrong in (("wrong", "is not its token"), ("", "is not set")):
        error = json.loads(done(home, *positions, code=1, ACCOUNT="one", ACCOUNT_TOKEN=token))["error"]
        assert error["code"] == "UNAUTHORIZED"
        assert f"OPENBELL_ACCOUNT_TOKEN {wrong}" in error["message"]
    assert "items" in done(home, *positions, ACCOUNT="one", ACCOUNT_TOKEN=secret)


def runs_passphrase(home: Path) -> None:
    ended = run(home, "passphrase", "--scopes", "read", typed="correct horse battery staple\n")
    assert (ended.returncode, ended.stdout) == (0, "local can sign in with the new passphrase and grant read\n")
    assert done(home, "passphrase", "--remove").startswith("local is removed")


def runs_token_list(home: Path) -> None:
    assert done(home, "token", "list").startswith("no tokens")
    assert not home.exists()


def runs_token_add(home: Path) -> None:
    secret = done(home, "token", "add", "ci", "--scopes", "read,trade", "--expires", "90d").splitlines()[-1]
    assert secret.startswith("obs_")
    shown = done(home, "token", "list")
    assert shown.split()[:3] == ["ci", "local", "read,trade"]
    assert secret not in shown
    assert done(home, "token", "add", "ci", "--scopes", "read", code=1) == ""


def runs_token_remove(home: Path) -> None:
    done(home, "token", "add", "ci", "--scopes", "read")
    assert done(home, "token", "remove", "ci") == "ci is removed\n"
    assert done(home, "token", "remove", "ci", code=1) == ""


def runs_consent_list(home: Path) -> None:
    assert done(home, "consent", "list").startswith("no consents")


def runs_consent_revoke(home: Path) -> None:
    assert done(home, "consent", "revoke", "nobody", code=1) == ""


def a_scenario(home: Path) -> None:
    decision = '{"symbol": "AAPL", "action": "HOLD", "confidence": 0.5, "reasoning": "none"}'
    done(home, "call", "decisions", "save_decision", decision, "--trade", *AT, "--scenario", "one")


def runs_scenario_list(home: Path) -> None:
    assert "no scenarios" in done(home, "scenario", "list")
    a_scenario(home)
    assert done(home, "scenario", "list").startswith("one  ")


def runs_scenario_reset(home: Path) -> None:
    a_scenario(home)
    assert done(home, "scenario", "reset", "one") == "one is empty\n"
    assert "empty" in done(home, "scenario", "list")


def runs_scenario_remove(home: Path) -> None:
    a_scenario(home)
    assert done(home, "scenario", "remove", "one") == "one is removed\n"
    assert "no scenarios" in done(home, "scenario", "list")


def runs_webhook_add(home: Path) -> None:
    shown = done(home, "webhook", "add", "https://example.com/hook", "--events", "fill", "--symbols", "btcusd")
    assert "added the webhook wh_" in shown
    secret = shown.splitlines()[-1]
    assert secret.startswith("whsec_")
    listed = done(home, "webhook", "list")
    assert "https://example.com/hook  fill  BTC/USD  0 waiting, 0 dead" in listed
    assert secret not in listed
    assert "\n/webhooks/in_" in done(home, "webhook", "add", "--inbound", "tradingview")
    for wrong in (("https://127.0.0.1/",), ("http://example.com/",), ("https://example.com/", "--events", "order")):
        assert done(home, "webhook", "add", *wrong, code=1) == ""
    assert done(home, "webhook", "add", code=2) == done(
        home, "webhook", "add", "https://a.b/", "--inbound", "x", code=2
    )


def runs_webhook_list(home: Path) -> None:
    assert "no webhooks" in done(home, "webhook", "list")
    done(home, "webhook", "add", "--inbound", "mine")
    assert "  inbound: mine  " in done(home, "webhook", "list")


def runs_webhook_remove(home: Path) -> None:
    added = done(home, "webhook", "add", "https://example.com/hook").split()[3]
    assert done(home, "webhook", "remove", added) == f"{added} is removed\n"
    assert "no webhooks" in done(home, "webhook", "list")
    assert done(home, "webhook", "remove", added, code=1) == ""


def runs_webhook_dead(home: Path) -> None:
    assert done(home, "webhook", "dead") == "no delivery was given up\n"
    assert done(home, "webhook", "dead", "--retry", "dlv_0", code=1) == ""


def runs_halt(home: Path) -> None:
    assert done(home, "halt", "--reason", "lunch").startswith("halted: ")
    assert re.search(r"already, since 20\S+: lunch\n", done(home, "halt", "--reason", "dinner"))
    order = '{"symbol": "BTC/USD", "side": "buy", "type": "market", "quantity": "0.01"}'
    assert "lunch" in done(home, "call", "chartgen", "place_order", order, "--trade", code=1)


def runs_resume(home: Path) -> None:
    assert done(home, "resume") == "trading was not halted\n"
    done(home, "halt")
    assert done(home, "resume").startswith("resumed: ")


def runs_verify(home: Path) -> None:
    assert done(home, "verify").startswith("ok    0 entries")


def runs_doctor(home: Path) -> None:
    assert "orders are on paper" in done(home, "doctor")


def runs_health(home: Path) -> None:
    assert '"state": "down"' in done(home, "health", code=2)
    assert not home.exists()


def runs_backup(home: Path) -> None:
    home.mkdir()
    assert done(home, "backup", str(home.parent / "copy")).startswith("copied 0 files")


def runs_restore(home: Path) -> None:
    runs_backup(home)
    assert done(home, "restore", str(home.parent / "copy")).startswith(f"restored {home} as it was at ")


def runs_backfill(home: Path) -> None:
    assert done(home, "backfill", "BTC/USD", "-t", "1d", "--from", "2026").startswith("BTC/USD 1d: ")


def runs_export(home: Path) -> None:
    home.mkdir()
    done(home, "export", "BTC/USD", "-t", "1d", "--from", "2026-01", "--to", "2026-03", "-o", str(home / "out.csv"))
    lines = (home / "out.csv").read_text().splitlines()
    assert (len(lines), lines[0]) == (61, "# simulated by Openbell, not real prices")


def runs_watch_list(home: Path) -> None:
    assert done(home, "watch", "list").split()[-2:] == ["BTC/USD", "ETH/USD"]
    assert not home.exists()


def runs_watch_add(home: Path) -> None:
    assert done(home, "watch", "add", "solusdt", "spy") == "added SOL/USDT\n"
    assert done(home, "watch", "list").split()[-1] == "SOL/USDT"


def runs_watch_remove(home: Path) -> None:
    assert done(home, "watch", "remove", "SPY", "NONE") == "removed SPY\n"
    assert "SPY" not in done(home, "watch", "list").split()
    file = home.parent / "bars.csv"
    file.write_text("time,open,high,low,close,volume\n2025-01-02,1,2,1,2,9\n2025-01-03,2,2,1,1,8\n")
    assert "watchlist" not in run(home, "import", str(file), "--symbol", "SPY").stderr, (
        "an import does not add it again"
    )
    assert "added to the watchlist" not in run(home, "import", str(file), "--symbol", "ZZZZ").stderr, (
        "this desk is simulated"
    )
    added = run(home, "import", str(file), "--symbol", "ZZZZ", FEED="none")
    assert "added to the watchlist: ZZZZ (" in added.stderr
    assert "ZZZZ" not in done(home, "watch", "list").split()
    assert done(home, "watch", "list", FEED="none").split() == ["ZZZZ"]
    assert done(home, "watch", "add", "SPY") == "added SPY\n"
    assert done(home, "watch", "list", FEED="none").split() == ["SPY", "ZZZZ"]


def runs_install(home: Path) -> None:
    file = home.parent / "mcp.json"
    assert "+  " in done(home, "install", "cursor", "--file", str(file), "--dry-run")
    assert not file.exists()
    assert f"wrote {file}" in done(home, "install", "cursor", "--file", str(file), "--yes")
    assert len(json.loads(file.read_text())["mcpServers"]) == 5
    assert not home.exists()


RUNS: dict[str, Callable[[Path], None]] = {
    "up": runs_up,
    "collect": runs_collect,
    "mcp": runs_mcp,
    "call": runs_call,
    "import": runs_import,
    "backfill": runs_backfill,
    "export": runs_export,
    "watch list": runs_watch_list,
    "watch add": runs_watch_add,
    "watch remove": runs_watch_remove,
    "chart": runs_chart,
    "indicators": runs_indicators,
    "backtest": runs_backtest,
    "backtester": runs_backtester,
    "sweep": runs_sweep,
    "strategies list": runs_strategies_list,
    "strategies show": runs_strategies_show,
    "strategies check": runs_strategies_check,
    "strategies submit": runs_strategies_submit,
    "account list": runs_account_list,
    "account add": runs_account_add,
    "account token": runs_account_token,
    "passphrase": runs_passphrase,
    "token list": runs_token_list,
    "token add": runs_token_add,
    "token remove": runs_token_remove,
    "consent list": runs_consent_list,
    "consent revoke": runs_consent_revoke,
    "scenario list": runs_scenario_list,
    "scenario reset": runs_scenario_reset,
    "scenario remove": runs_scenario_remove,
    "webhook add": runs_webhook_add,
    "webhook list": runs_webhook_list,
    "webhook remove": runs_webhook_remove,
    "webhook dead": runs_webhook_dead,
    "halt": runs_halt,
    "resume": runs_resume,
    "verify": runs_verify,
    "doctor": runs_doctor,
    "health": runs_health,
    "backup": runs_backup,
    "restore": runs_restore,
    "install": runs_install,
}


@pytest.mark.parametrize("command", COMMANDS)
def test_it_works_in_a_new_home(tmp_path: Path, command: str) -> None:
    RUNS[command](tmp_path / "home")


def test_every_command_that_the_app_has_is_run() -> None:
    assert sorted(RUNS) == sorted(COMMANDS)
