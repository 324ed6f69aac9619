"""Markers say what a test is: derived from its code, and enforced for pure tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.campaigns import campaign_names
from tests.client import Client
from tests.counts import QUICK_EXAMPLES
from tests.markers import PURE_ROOMS, Reach, try_few_examples
from tests.stores.samples import at
from tests.test_ci import PLUGINS

ROOT = Path(__file__).resolve().parents[1]

PURE = """
import contextlib, os, socket, subprocess, sys, threading
import asyncio
import pytest

pytestmark = pytest.mark.pure

def test_process():
    subprocess.run([sys.executable, "-c", ""])

def test_fork():
    if not os.fork():
        os._exit(0)

def test_caught_in_a_thread():
    def work():
        with contextlib.suppress(Exception):
            socket.create_connection(("127.0.0.1", 9))
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

def test_server():
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))

def test_loop_and_files(tmp_path):
    asyncio.run(asyncio.sleep(0))
    (tmp_path / "some").write_text("text")
"""
OTHER = """
import subprocess, sys

def test_process():
    assert subprocess.run([sys.executable, "-c", ""]).returncode == 0
"""


def test_a_pure_test_that_starts_a_process_or_opens_a_socket_fails(tmp_path: Path) -> None:
    settings = "[pytest]\naddopts = {}\nmarkers =\n  pure\n  process\n  soak\n"
    (tmp_path / "pytest.ini").write_text(settings.format(PLUGINS))
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["tests.markers"]\n')
    (tmp_path / "test_pure.py").write_text(PURE)
    (tmp_path / "test_other.py").write_text(OTHER)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rA"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    found = {line.split()[1]: line.split()[0] for line in done.stdout.splitlines() if line.startswith(("PASS", "FAIL"))}
    refused = ("process", "fork", "caught_in_a_thread", "server")
    assert found == {
        **{f"test_pure.py::test_{name}": "FAILED" for name in refused},
        "test_pure.py::test_loop_and_files": "PASSED",
        "test_other.py::test_process": "PASSED",
    }, done.stdout


def test_what_starts_processes_is_found_through_the_functions_of_the_tests() -> None:
    def straight() -> None:
        Client(Path("somewhere"))

    def pure() -> None:
        at("2026-01-05T15:00:00Z")

    assert Reach().follows(straight)
    assert Reach().follows(_starts)
    assert not Reach().follows(pure)


def _starts() -> None:
    _starts_too()


def _starts_too() -> None:
    os.fork()


def test_campaigns_are_found_in_the_source_of_their_module() -> None:
    found = campaign_names(ROOT / "tests" / "stores" / "records" / "contract.py")
    assert found == {"test_a_killed_writer_loses_nothing_that_it_acknowledged"}
    assert "test_a_killed_import_keeps_what_it_printed_and_the_same_command_completes_it" in campaign_names(
        ROOT / "tests" / "cli" / "test_killed_commands.py"
    )
    assert not campaign_names(Path(__file__))


def test_the_quick_run_tries_few_examples_of_each_property() -> None:
    tried = []

    @settings(max_examples=10 * QUICK_EXAMPLES, database=None)
    @given(st.integers())
    def many(number: int) -> None:
        tried.append(number)

    @given(st.integers())
    def by_default(number: int) -> None:
        tried.append(number)

    for test in (many, by_default):
        tried.clear()
        try_few_examples(test)
        test()
        assert len(tried) == QUICK_EXAMPLES


def test_every_pure_room_has_tests() -> None:
    assert all(list((ROOT / "tests" / room).glob("test_*.py")) for room in PURE_ROOMS)
