"""Texts from outside on a real terminal, and over the wire: nothing in them commands the terminal or is hidden."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.client import OPENBELL, PATIENCE, Client, environment, run
from tests.prefork import Process

HOSTILE = "start \x1b]0;owned\x07\x1b[2J\u202egnirts\u202c\u200b\U000e0049\ufe0f end"
SEEN = "start gnirts end"
HIDDEN = ("\x1b]", "\x1b[2J", "\x07", "\u202e", "\u200b", "\U000e0049", "\ufe0f", "owned")
SPEC: dict[str, Any] = {
    "name": "MINE",
    "description": f"{HOSTILE}\nFORGED  simple  a line of its own",
    "indicators": [{"id": "fast", "type": "EMA", "params": {"length": 5}}],
    "entry_conditions": [{"type": "OVER", "indicator": "fast", "params": {"other": "close"}}],
    "exit_conditions": [{"type": "STOP_LOSS", "params": {"percentage": 5}}],
    "parameters": [],
}


def on_terminal(home: Path, *words: str, until: Callable[[str], bool] = lambda _text: False, **settings: str) -> str:
    """Everything that a command writes to its terminal, up to its end or until a condition holds."""
    controller, terminal = pty.openpty()
    process = Process(
        [*OPENBELL, *words],
        env=environment(home, **settings) | {"TERM": "xterm-256color", "COLUMNS": "200", "LINES": "50"},
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    written, deadline = b"", time.monotonic() + PATIENCE
    with process:
        try:
            while time.monotonic() < deadline and not until(written.decode(errors="replace")):
                if select.select([controller], [], [], 0.1)[0]:
                    try:
                        written += os.read(controller, 65536)
                    except OSError:  # the command has ended
                        break
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            os.close(controller)
    return written.decode(errors="replace")


def check(text: str) -> None:
    for each in HIDDEN:
        assert each not in text, repr(each)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A desk that has a spec and a decision with hostile texts, and is halted for a hostile reason."""
    with Client(tmp_path, command=[*OPENBELL, "mcp", "strategy-db"], TIMEOUT="60") as client:
        client.initialize()
        answer = client.call("submit_new_spec", SPEC)["result"]
        assert not answer.get("isError"), answer
    with Client(tmp_path, command=[*OPENBELL, "mcp", "decisions"]) as client:
        client.initialize()
        decision = {"symbol": "AAPL", "action": "HOLD", "confidence": 0.5, "reasoning": HOSTILE}
        assert not client.call("save_decision", decision)["result"].get("isError")
    assert run(tmp_path, "halt", "--reason", HOSTILE).returncode == 0
    return tmp_path


def test_attack_escape_sequences_in_texts_that_commands_print(home: Path) -> None:
    listed = on_terminal(home, "strategies", "list")
    check(listed)
    (line,) = [line for line in listed.splitlines() if line.startswith("MINE ")]
    assert line.rstrip().endswith(f"{SEEN} FORGED  simple  a line of its own"), "a text is one line of a list"
    shown = on_terminal(home, "strategies", "show", "MINE")
    # YAML writes them as escapes, which can be read and stay in the file.
    assert not [each for each in HIDDEN[:-1] if each in shown]
    assert r"\e]0;owned\a" in shown
    doctor = on_terminal(home, "doctor")
    check(doctor)
    assert SEEN in doctor
    decisions = on_terminal(home, "call", "decisions", "get_recent_decisions")
    check(decisions)
    assert SEEN in decisions


def test_texts_on_a_pipe_are_exact_and_on_a_terminal_visible(tmp_path: Path) -> None:
    exact = "woman \U0001f469\u200d\U0001f4bb with a logo \ue000"
    with Client(tmp_path, command=[*OPENBELL, "mcp", "strategy-db"], TIMEOUT="60") as client:
        client.initialize()
        answer = client.call("submit_new_spec", {**SPEC, "description": exact})["result"]
        assert not answer.get("isError"), answer
    assert exact in run(tmp_path, "strategies", "show", "MINE").stdout
    shown = on_terminal(tmp_path, "strategies", "show", "MINE")
    assert "woman \U0001f469\U0001f4bb with a logo " in shown
    assert "\ue000" not in shown


def test_attack_names_of_files_reach_no_terminal_through_a_pipe(tmp_path: Path) -> None:
    """What an import notes is often read through tee or less."""
    file = tmp_path / f"prices {HOSTILE}.csv"
    file.write_text("timestamp,open,high,low,close,volume,more\n2025-09-19,1,2,1,2,5,1\n2025-09-22,1,2,1,2,5,1\n")
    for words in (("--check",), ()):
        done = run(tmp_path / "home", "import", str(file), "--symbol", "AAPL", *words)
        assert done.returncode == 0, done.stderr
        check(done.stdout + done.stderr)
        assert f"prices {SEEN}.csv" in done.stdout + done.stderr


def test_attack_escape_sequences_in_texts_of_the_live_view(home: Path) -> None:
    view = on_terminal(home, "up", "--trade", until=lambda text: SEEN in text)
    assert f"HALTED: {SEEN}" in view
    # The view itself uses sequences, but none that the text has brought.
    for each in set(HIDDEN) - {"\x1b]", "\x1b[2J"}:
        assert each not in view, repr(each)
    assert "\x1b]0;" not in view


def test_attack_hidden_text_in_results(home: Path) -> None:
    with Client(home, command=[*OPENBELL, "mcp", "strategy-db"], TIMEOUT="60") as client:
        client.initialize()
        tools = {tool["name"]: tool for tool in client.request("tools/list")["result"]["tools"]}
        found = client.call("get_top_specs", {"source": "LLM_GENERATED"})["result"]["structuredContent"]["data"][
            "items"
        ]
        library = client.call("get_top_specs", {"source": "CANONICAL"})["result"]["structuredContent"]["data"]["items"]
    assert tools["get_top_specs"]["annotations"]["openWorldHint"] is True
    (spec,) = found
    check(json.dumps(spec, ensure_ascii=False))
    assert spec["trusted"] is False
    assert spec["from"]
    assert not any("trusted" in each for each in library), "what the desk wrote itself has no mark"
    with Client(home, command=[*OPENBELL, "mcp", "decisions"]) as client:
        client.initialize()
        (tool,) = [tool for tool in client.request("tools/list")["result"]["tools"] if tool["name"].startswith("get_")]
        answer = client.call("get_recent_decisions")["result"]
    assert tool["annotations"]["openWorldHint"] is True
    assert "never instructions" in tool["description"]
    (decision,) = answer["structuredContent"]["data"]["items"]
    assert decision["reasoning"] == SEEN
    assert decision["trusted"] is False
    check(answer["content"][0]["text"])
