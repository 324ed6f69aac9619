"""passphrase and token at the operator's shell."""

from __future__ import annotations

import asyncio
import os
import pty
import shlex
import subprocess
import time
from pathlib import Path

import pytest

from openbell.desk.settings import load
from openbell.desk.settings.access import make_access
from openbell.gateway.oauth.passphrases import fits
from openbell.gateway.oauth.secret_texts import digest
from openbell.stores.access import static_tokens, users
from openbell.stores.access.static_tokens import StaticToken
from openbell.stores.access.users import User
from tests.cli.in_process import command
from tests.client import OPENBELL, PATIENCE, environment, run
from tests.launching import loaded
from tests.prefork import Process

PASSPHRASE = "correct horse battery staple"


def user(home: Path, name: str = "local") -> User | None:
    async def read() -> User | None:
        store = make_access(load({}, home=home, read_only=True))
        try:
            return await store.read(lambda connection: users.find(connection, name))
        finally:
            await store.close()

    return asyncio.run(read())


def tokens(home: Path) -> list[StaticToken]:
    async def read() -> list[StaticToken]:
        store = make_access(load({}, home=home, read_only=True))
        try:
            return await store.read(static_tokens.listed)
        finally:
            await store.close()

    return asyncio.run(read())


def typed(home: Path, text: str, *words: str) -> tuple[int, str]:
    ended = run(home, "passphrase", *words, typed=text)
    assert "Traceback" not in ended.stderr
    assert not text.strip() or text.strip() not in ended.stdout + ended.stderr, "never shown"
    return ended.returncode, ended.stderr


# Passphrases


def test_the_operator_gets_every_scope_and_others_read(tmp_path: Path) -> None:
    assert typed(tmp_path, PASSPHRASE + "\n") == (0, "")
    assert typed(tmp_path, PASSPHRASE, "ann.b-1_2") == (0, "")
    operator, other = user(tmp_path), user(tmp_path, "ann.b-1_2")
    assert operator
    assert other
    assert (sorted(operator.scopes), sorted(other.scopes)) == (["admin", "read", "trade", "write"], ["read"])
    assert fits(PASSPHRASE, operator.passphrase)
    assert not fits(PASSPHRASE + "x", operator.passphrase)
    assert (operator.passphrase.n, operator.passphrase.r, operator.passphrase.p) == (2**15, 8, 3)
    assert operator.passphrase.salt != other.passphrase.salt


def test_a_new_passphrase_keeps_the_scopes(tmp_path: Path) -> None:
    typed(tmp_path, PASSPHRASE, "--scopes", "read,trade")
    typed(tmp_path, PASSPHRASE + "!")
    found = user(tmp_path)
    assert found
    assert found.scopes == {"read", "trade"}
    assert fits(PASSPHRASE + "!", found.passphrase)


@pytest.mark.parametrize("text", ["", "\n", "eleven char\n", "x" * 1025, "twelve\tcharacters"])
def test_an_unfit_passphrase_changes_nothing(tmp_path: Path, text: str) -> None:
    code, said = typed(tmp_path, text)
    assert (code, "12 to 1024 characters" in said) == (1, True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", "Ann", "a b", "a/b", "é", "x" * 65, "a\nb"])
def test_an_impossible_name_is_refused(tmp_path: Path, name: str) -> None:
    for words in (("passphrase", name), ("token", "add", name, "--scopes", "read"), ("token", "remove", name)):
        code, _, said = command(tmp_path, *words)
        assert (code, "1 to 64 characters" in said) == (2, True)
    assert list(tmp_path.iterdir()) == []


def at_terminal(home: Path, *answers: str) -> tuple[int, str]:
    """Run the command at a terminal and type an answer to each question."""
    ours, theirs = pty.openpty()
    # getpass opens the controlling terminal, and this one is not: it then asks on standard error.
    with Process(
        [*OPENBELL, "passphrase"], env=environment(home), stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        shown, deadline = b"", time.monotonic() + PATIENCE
        for number, answer in enumerate(answers, start=1):
            while shown.count(b": ") < number:
                assert time.monotonic() < deadline
                shown += os.read(ours, 4096)
            os.write(ours, answer.encode() + b"\n")
        try:
            while True:
                shown += os.read(ours, 4096)
        except OSError:
            pass  # the other end is closed
        process.wait(PATIENCE)
    os.close(ours)
    return process.returncode, shown.decode()


def test_a_terminal_asks_twice_without_echo(tmp_path: Path) -> None:
    code, shown = at_terminal(tmp_path, PASSPHRASE, PASSPHRASE)
    assert code == 0, shown
    assert PASSPHRASE not in shown
    assert "local can sign in" in shown
    found = user(tmp_path)
    assert found
    assert fits(PASSPHRASE, found.passphrase)


def test_a_second_answer_that_differs_changes_nothing(tmp_path: Path) -> None:
    code, shown = at_terminal(tmp_path, PASSPHRASE, PASSPHRASE + "x")
    assert (code, "not the same" in shown) == (1, True)
    assert user(tmp_path) is None


# Tokens


def test_only_the_hash_of_a_token_is_stored(tmp_path: Path) -> None:
    before = time.time()
    _, shown, _ = command(
        tmp_path, "token", "add", "ci", "--scopes", "trade,read", "--expires", "2h", "--user", "robot"
    )
    secret = shown.splitlines()[-1]
    (stored,) = tokens(tmp_path)
    assert (stored.name, stored.subject, sorted(stored.scopes)) == ("ci", "robot", ["read", "trade"])
    assert stored.hash == digest(secret)
    assert stored.expires_at is not None
    assert 7200 <= stored.expires_at - before <= 7200 + PATIENCE
    for file in tmp_path.iterdir():
        assert secret.encode() not in file.read_bytes()


@pytest.mark.parametrize("words", [("--scopes", "root"), ("--scopes", ""), ("--scopes", "read", "--expires", "soon")])
def test_unfit_options_add_no_token(tmp_path: Path, words: tuple[str, ...]) -> None:
    code, shown, said = command(tmp_path, "token", "add", "ci", *words)
    assert (code, shown) == (2, "")
    assert "must be" in said
    assert list(tmp_path.iterdir()) == []


def test_a_read_only_desk_changes_neither_users_nor_tokens(tmp_path: Path) -> None:
    for words in (("passphrase", "--remove"), ("token", "add", "ci", "--scopes", "read"), ("token", "remove", "ci")):
        assert command(tmp_path, *words, READ_ONLY="1")[0] == 1
    assert command(tmp_path, "token", "list", READ_ONLY="1")[0] == 0
    assert list(tmp_path.iterdir()) == []


# The page


def test_the_examples_of_the_page_run(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "oauth.md").read_text()
    block = page.partition("## Users and tokens at the shell")[2].partition("```sh\n")[2].partition("```")[0]
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "openbell"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(loaded(OPENBELL))} "$@"\n')
    program.chmod(0o755)
    variables = environment(tmp_path / "home")
    variables["PATH"] = f"{folder}:{variables['PATH']}"
    done = subprocess.run(
        ["sh", "-e", "-c", block], env=variables, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    assert block.count("openbell ") == 8
    shown = [line.split()[0] for line in done.stdout.splitlines()]
    assert [first for first in shown if first in {"nightly", "robot", "ann"}] == [
        "ann",
        "nightly",
        "robot",
        "nightly",
        "ann",
    ]
    assert user(tmp_path / "home", "ann") is None
