"""`openbell restore` makes no token and no user valid again that was removed after the backup, unless it is told to."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.client import run
from tests.gateway.streamable.gateways import Up, message

PASSPHRASE = "correct horse battery staple"
HTTP_OK, UNAUTHORIZED = 200, 401


def add_token(home: Path, name: str) -> str:
    added = run(home, "token", "add", name, "--scopes", "read")
    assert added.returncode == 0, added.stderr
    return added.stdout.split()[-1]


def statuses(home: Path, tokens: dict[str, str]) -> dict[str, int]:
    """What the gateway of a home answers to each token."""
    with Up(home, tokens=tokens) as up:
        return {name: up.post(message("tools/list"), name).status for name in tokens}


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A home with a backup of the time before one of its tokens and users was removed, and another added."""
    folder = tmp_path_factory.mktemp("access")
    home = folder / "home"
    tokens = {name: add_token(home, name) for name in ("kept", "removed")}
    for name in ("ann", "bob"):
        assert run(home, "passphrase", name, typed=PASSPHRASE).returncode == 0
    assert run(home, "backup", str(folder / "copy")).returncode == 0
    assert run(home, "token", "remove", "removed").returncode == 0
    assert run(home, "passphrase", "bob", "--remove").returncode == 0
    tokens["later"] = add_token(home, "later")
    return folder, tokens


def users_of(home: Path) -> set[str]:
    with closing(sqlite3.connect(home / "access.sqlite")) as db:
        return {name for (name,) in db.execute("SELECT name FROM users")}


def test_removed_tokens_stay_removed_and_later_ones_stay(tmp_path: Path, changed: tuple[Path, dict[str, str]]) -> None:
    folder, tokens = changed
    home = tmp_path / "home"
    shutil.copytree(folder / "home", home)
    done = run(home, "restore", str(folder / "copy"), "--replace")
    assert done.returncode == 0, done.stderr
    assert "note  not valid, because the backup alone has it: token removed, user bob\n" in done.stdout
    assert statuses(home, tokens) == {"kept": HTTP_OK, "removed": UNAUTHORIZED, "later": HTTP_OK}
    assert users_of(home) == {"ann"}


def test_no_token_is_valid_in_a_new_home(tmp_path: Path, changed: tuple[Path, dict[str, str]]) -> None:
    folder, tokens = changed
    home = tmp_path / "home"
    done = run(home, "restore", str(folder / "copy"))
    assert "because the backup alone has it: token kept, token removed, user ann, user bob\n" in done.stdout
    assert "restore with --keep-tokens" in done.stdout
    assert statuses(home, tokens) == dict.fromkeys(tokens, UNAUTHORIZED)


def test_an_operator_can_keep_them_and_is_told_how_to_remove_each(
    tmp_path: Path, changed: tuple[Path, dict[str, str]]
) -> None:
    folder, tokens = changed
    home = tmp_path / "home"
    shutil.copytree(folder / "home", home)
    done = run(home, "restore", str(folder / "copy"), "--replace", "--keep-tokens")
    again = [line for line in done.stdout.splitlines() if "valid again" in line]
    assert len(again) == 2, done.stdout
    assert statuses(home, tokens) == {"kept": HTTP_OK, "removed": HTTP_OK, "later": UNAUTHORIZED}
    for line in again:
        words = line.partition("; openbell ")[2].removesuffix(" removes it").split()
        assert run(home, *words).returncode == 0, words
    assert statuses(home, tokens) == {"kept": HTTP_OK, "removed": UNAUTHORIZED, "later": UNAUTHORIZED}
    assert users_of(home) == {"ann"}


def test_a_restore_that_was_killed_between_its_two_renames_keeps_those_of_the_old_home(
    tmp_path: Path, changed: tuple[Path, dict[str, str]]
) -> None:
    folder, tokens = changed
    home = tmp_path / "home"
    shutil.copytree(folder / "home", home)
    assert run(home, "halt", "--reason", "restoring").returncode == 0
    home.rename(tmp_path / "home.before-restore-20260101T000000Z")
    done = run(home, "restore", str(folder / "copy"), "--replace")
    assert "is halted (restoring), and stays so" in done.stdout
    assert statuses(home, tokens) == {"kept": HTTP_OK, "removed": UNAUTHORIZED, "later": HTTP_OK}


def test_damaged_users_of_the_old_home_are_not_replaced_by_older_ones(
    tmp_path: Path, changed: tuple[Path, dict[str, str]]
) -> None:
    folder, tokens = changed
    home = tmp_path / "home"
    home.mkdir()
    (home / "access.sqlite").write_bytes(b"no database" * 1000)
    done = run(home, "restore", str(folder / "copy"), "--replace")
    assert done.returncode == 0, done.stderr
    assert "the users and tokens of the home that was replaced could not be kept: " in done.stdout
    assert statuses(home, tokens) == dict.fromkeys(tokens, UNAUTHORIZED)
