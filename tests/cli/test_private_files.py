"""Who can read the home: its owner only, whatever the umask; homes of groups stay shared; exposed secrets are reported."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import pytest

from tests.client import OPENBELL, PATIENCE, environment, run
from tests.gateway.streamable.gateways import Up
from tests.waiting import wait_for


def run_with_umask(home: Path, umask: int, *words: str) -> None:
    """A command that starts from nothing, because processes that are forked have the umask of the tests."""
    command = [*OPENBELL, *words]
    done = subprocess.run(
        command, env=environment(home), umask=umask, capture_output=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr


def modes(home: Path) -> dict[str, int]:
    """The permissions of the home and everything in it."""
    found = [home, *home.rglob("*")]
    return {each.relative_to(home).as_posix(): stat.S_IMODE(each.lstat().st_mode) for each in found}


def test_everything_in_a_home_is_private(tmp_path: Path) -> None:
    home = tmp_path / "home"
    run_with_umask(home, 0, "backfill", "BTC/USD", "-t", "1d", "--from", "2026")
    with Up(home, "--trade", "--watch", "BTC/USD", tokens={}) as up:
        wait_for(lambda: bool(list(home.rglob("buffer.sqlite*"))), "bars")
        run_with_umask(home, 0, "halt")
        for name, mode in modes(home).items():
            assert mode == (0o700 if (home / name).is_dir() else 0o600), (name, oct(mode))
        assert up.stop() == 0
    assert {"watchlist.txt", "halted", "simulated/records.sqlite"} <= set(modes(home))
    for name, mode in modes(home).items():
        assert not mode & 0o077, (name, oct(mode))
    assert "can be read by other users" not in run(home, "doctor").stdout


def test_files_for_the_user_have_the_users_permissions(tmp_path: Path) -> None:
    home, picture, bars = tmp_path / "home", tmp_path / "chart.png", tmp_path / "bars.csv"
    run_with_umask(home, 0o002, "chart", "BTC/USD", "-o", str(picture))
    run_with_umask(home, 0o002, "export", "BTC/USD", "-t", "1d", "--from", "2026", "-o", str(bars))
    assert [stat.S_IMODE(each.stat().st_mode) for each in (picture, bars)] == [0o664, 0o664]


@pytest.mark.parametrize(("mode", "file", "folder"), [(0o750, 0o640, 0o750), (0o770, 0o660, 0o770)])
def test_a_home_that_is_shared_with_a_group_stays_shared(tmp_path: Path, mode: int, file: int, folder: int) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(mode)
    assert run(home, "backfill", "BTC/USD", "-t", "1d", "--from", "2026").returncode == 0
    found = modes(home)
    assert found["."] == mode
    assert found["simulated"] == folder
    assert [name for name, each in found.items() if name.endswith(".parquet") and each == file]
    assert "is shared with its group" in run(home, "doctor").stdout


def test_a_home_of_before_is_reported_with_the_command_that_closes_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o755)
    (home / "watchlist.txt").write_text("BTC/USD\n")
    (home / "watchlist.txt").chmod(0o644)
    found = run(home, "doctor").stdout
    assert (
        f"note  home {home} can be read by other users, and so can 1 file in it\n      → chmod -R go= {home}" in found
    )
    assert modes(home)["."] == 0o755, "doctor changes nothing"


@pytest.mark.parametrize(
    ("toml", "key"),
    [
        ("influx_token = 'q7zx-token'", "influx_token"),
        ("arche_key = 'q7zx-key'\nfeed = 'sim'", "arche_key"),
        ("database_url = 'postgresql://ann:q7zx@127.0.0.1:9/x'", "database_url"),
        ("database_url = 'postgresql://127.0.0.1:9/x'", ""),
        ("feed = 'sim'", ""),
    ],
)
def test_secrets_that_every_user_can_read_draw_a_warning(tmp_path: Path, toml: str, key: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o755)
    file = home / "openbell.toml"
    file.write_text(toml)
    file.chmod(0o644)
    warning = f"{file} holds {key} and can be read by every user"
    shown = run(home, "watch", "list").stderr
    assert (warning in shown) == bool(key), shown
    assert "q7zx" not in shown
    done = run(home, "doctor", POOL_POSTGRES_CONNECT="1")
    assert (f"bad   {warning}" in done.stdout) == bool(key)
    file.chmod(0o600)
    assert run(home, "watch", "list").stderr == ""
    file.chmod(0o644)
    home.chmod(0o700)
    assert run(home, "watch", "list").stderr == "", "nobody else reaches the file"
