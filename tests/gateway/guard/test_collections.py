"""Large messages do not make the garbage collector look at all that a desk has loaded, while nothing else runs."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.client import environment
from tests.gateway.streamable.gateways import Client, add_tokens, message
from tests.prefork import Process
from tests.waiting import wait_for

_COUNTED = """
import gc, signal, sys
from openbell.cli.entry import main

largest = 0

def note(phase, info):
    global largest
    if phase == "start" and info["generation"] == 2:
        largest = max(largest, len(gc.get_objects()))

def begin(*_):
    global largest
    largest = 0
    gc.collect()  # without what is frozen
    print(largest, file=sys.stderr, flush=True)
    largest = 0

def end(*_):
    print(largest, file=sys.stderr, flush=True)

if __name__ == "__main__":
    gc.callbacks.append(note)
    signal.signal(signal.SIGUSR1, begin)
    signal.signal(signal.SIGUSR2, end)
    main()
"""
"""Runs the command line. Prints how many objects a full collection looks at now, or looked at at most since then."""
LISTS = 49_000
OWN = 30_000
"""Objects of the desk that a collection may look at; as many come while it searches for strategies."""


def test_attack_messages_with_many_values_bring_no_collection_of_the_whole_desk(tmp_path: Path) -> None:
    """A full collection looks at the values of a message and at what is new, not at 90,000 objects of the desk itself."""
    tokens, pipe = add_tokens(tmp_path), subprocess.PIPE
    (tmp_path / "desk.py").write_text(_COUNTED)  # a file: the processes of the desk load it too
    command = [sys.executable, str(tmp_path / "desk.py"), "up", "--port", "0"]
    with Process(command, env=environment(tmp_path, RATE_READ="0"), stdout=pipe, stderr=pipe, text=True) as ran:
        try:
            assert ran.stderr
            line = next(line for line in ran.stderr if line.startswith("MCP over HTTP: "))
            client = Client(int(line.split()[3].removesuffix("/mcp").rpartition(":")[2]), tokens)

            def number(signal_number: int) -> int:
                assert ran.stderr
                ran.send_signal(signal_number)
                return int(next(line for line in ran.stderr if line.strip().isdigit()))

            lists = message("tools/call", {"name": "get_current_price", "arguments": {"symbol": [[]] * LISTS}})
            assert client.post(lists, "reader", "/market-data/mcp").status == 200
            wait_for(lambda: number(signal.SIGUSR1) < OWN, "what was loaded to be frozen")
            for _ in range(30):
                assert client.post(lists, "reader", "/market-data/mcp").status == 200
            largest = number(signal.SIGUSR2)
        finally:
            ran.kill()
    assert 0 < largest < LISTS + 2 * OWN, largest
