"""Every command line of the README's shell examples, run as it is written, in a new home."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from openbell.market.clock import iso, parse_time
from tests.client import OPENBELL, PATIENCE, environment
from tests.prefork import Process

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
PROGRAM = ".venv/bin/openbell"


def lines_of(text: str) -> Iterator[list[str]]:
    """The command lines of the shell blocks of some text, as words."""
    for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            if words := shlex.split(line, comments=True):
                yield words


SECTIONS = {text.partition("\n")[0]: list(lines_of(text)) for text in README.split("\n## ")}
COMMANDS = {title: lines for title, lines in SECTIONS.items() if any(PROGRAM in words for words in lines)}
"""Sections that call openbell; the lines of one section build on each other."""
ENDLESS = [words for lines in COMMANDS.values() for words in lines if words[-1] == "up"]
ENDING = {title: [words for words in lines if words not in ENDLESS] for title, lines in COMMANDS.items()}


class Example:
    """One command line of the README, running in a folder that looks like a checkout's."""

    def __init__(self, folder: Path, words: list[str], **settings: str) -> None:
        at = words.index(PROGRAM)
        chosen = dict(word.split("=", 1) for word in words[:at])
        kept = {
            key: value
            for key, value in environment(folder / "home", TIMEOUT="60", **settings).items()
            if not key.startswith("ALPACA_")
        }
        pipe = subprocess.PIPE
        self.process = Process(
            [*OPENBELL, *words[at + 1 :]], cwd=folder, env=kept | chosen, text=True, stdout=pipe, stderr=pipe
        )

    def end(self, patience: float = PATIENCE) -> tuple[int, str, str]:
        """Its exit code, and what it printed that was not read before."""
        try:
            out, errors = self.process.communicate(timeout=patience)
        except BaseException:
            self.process.kill()
            raise
        assert "Traceback" not in errors, errors
        return self.process.returncode, out, errors

    def read_until(self, wanted: str) -> None:
        """Read its output up to a line that contains `wanted`, then interrupt it."""
        assert self.process.stdout
        seen = []
        for line in self.process.stdout:
            seen.append(line)
            if wanted in line:
                self.process.send_signal(signal.SIGINT)
                return
        raise AssertionError(f"{wanted!r} not in {seen}: {self.end()}")


def test_every_line_is_run_here_or_is_a_target_of_make() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for words in lines_of(README):
        if words[0] == "make":
            assert words[1] in targets, words
        else:
            assert any(words in lines for lines in COMMANDS.values()), words
    assert sum(map(len, COMMANDS.values())) >= 20
    assert len(ENDLESS) == 4, "each has a test of its own below"


@pytest.mark.parametrize("title", [title for title, lines in ENDING.items() if lines])
def test_the_lines_of_a_section_succeed_one_after_the_other(tmp_path: Path, title: str) -> None:
    """A section that waits runs in a scenario, whose clock is put forward instead."""
    waits = any(words[0] == "sleep" for words in ENDING[title])
    clock, results = parse_time("2026-03-02T15:00:10Z"), {}
    for words in ENDING[title]:
        if words[0] == "sleep":
            clock += float(words[1])
            continue
        if words[0] == "printf":
            (tmp_path / words[-1]).write_text(words[1].replace("\\n", "\n"))
            continue
        command, _, target = " ".join(words).partition(" > ")
        code, out, errors = Example(
            tmp_path,
            words[: words.index(">")] if target else words,
            **({"AS_OF": iso(clock), "SCENARIO": "readme"} if waits else {}),
        ).end()
        assert code == 0, f"{command}\n{out}{errors}"
        assert out, words
        if target:
            (tmp_path / target).write_text(out)
        if "call" in words:
            results[words[words.index("call") + 2]] = json.loads(out)
            assert isinstance(json.loads(out), dict)
        if "-o" in words:
            assert (tmp_path / words[words.index("-o") + 1]).stat().st_size > 1000
    if waits:
        (order,), (position,) = results["get_orders"]["orders"], results["get_positions"]["data"]["items"]
        assert (order["status"], position["symbol"], position["size"]) == ("filled", "BTC/USD", 0.01)
        assert len(results["get_notifications"]["notifications"]) == 1
        assert not (tmp_path / "home" / "halted").exists(), "the desk trades"


def test_the_truth_line_has_the_fields_of_the_example(tmp_path: Path) -> None:
    (example,) = re.findall(r"^truth: .*$", README, re.MULTILINE)
    _, _, errors = Example(tmp_path, [PROGRAM, "call", "market-data", "get_candles", '{"symbol": "BTC/USD"}']).end()
    assert re.findall(r" (\w+)=", errors) == re.findall(r" (\w+)=", example)


# Vendors and databases that tests cannot reach: the desk starts, or says what it lacks


def test_a_desk_on_an_exchange_starts_and_stops(tmp_path: Path) -> None:
    (words,) = [words for words in ENDLESS if "OPENBELL_FEED=ccxt:kraken" in words]
    desk = Example(tmp_path, words)
    desk.read_until("LIVE DATA (feed ccxt:kraken)")
    assert desk.end(5 * PATIENCE)[0] == 0, "it may be importing ccxt, which takes seconds of the processor"


def test_a_desk_on_alpaca_names_the_keys_that_it_needs(tmp_path: Path) -> None:
    (words,) = [words for words in ENDLESS if "OPENBELL_FEED=alpaca" in words]
    code, _, errors = Example(tmp_path, words).end()
    assert (code, errors.count("\n")) == (1, 1)
    assert "needs ALPACA_API_KEY and ALPACA_SECRET_KEY" in errors


@pytest.mark.skipif(find_spec("yfinance") is None, reason="pip install 'openbell[yahoo]'")
def test_a_desk_on_yahoo_shows_that_the_data_is_delayed(tmp_path: Path) -> None:
    (words,) = [words for words in ENDLESS if "OPENBELL_FEED=yahoo" in words]
    desk = Example(tmp_path, ["YAHOO_PROXY_URL=http://127.0.0.1:9/", *words])
    desk.read_until("delayed data, for personal use only (Yahoo's terms) (feed yahoo)")
    assert desk.end(5 * PATIENCE)[0] == 0


def test_a_desk_whose_influxdb_is_away_waits_for_it(tmp_path: Path) -> None:
    (words,) = [words for words in ENDLESS if words[0].startswith("OPENBELL_INFLUX_URL=")]
    nobody = "http://127.0.0.1:9"  # somebody may run an InfluxDB at the README's address
    desk = Example(tmp_path, [f"OPENBELL_INFLUX_URL={nobody}", *words[1:]])
    desk.read_until("waiting for the store")
    code, _, errors = desk.end()
    assert code == 0
    assert f"InfluxDB at {nobody} cannot be reached" in errors
