"""The files of `openbell backtest`: refused before any work, written as a whole, and the same for the same request."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from openbell.cli.terminal import write_output
from openbell.market.errors import InvalidParameter
from tests.cli.in_process import command
from tests.client import run
from tests.strategies.specs import crossover


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "huge"])
def test_only_regular_files_of_a_moderate_size_are_read_as_specs(tmp_path: Path, kind: str) -> None:
    """A pipe without a writer would block for ever, and a device has no end."""
    path = tmp_path / "spec.yaml"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_text("name: A\n" + "#" * 1_000_000)
    for words in (("strategies", "check", str(path)), ("backtest", str(path), "BTC/USD")):
        done = run(tmp_path / "home", *words)
        assert done.returncode == 1
        reason = "1,000,008 bytes, and a spec has at most 1,000,000" if kind == "huge" else "is not a regular file"
        assert reason in done.stderr


RUN = ("backtest", "MACD_CROSSOVER", "BTC/USD", "--from", "2025", "--to", "2026", "--as-of", "2026-03-02T15:00:00Z")


@pytest.mark.parametrize(
    ("name", "start"), [("a.png", b"\x89PNG"), ("a.jpg", b"\xff\xd8"), ("a.JPEG", b"\xff\xd8"), ("a.svg", b"<svg")]
)
def test_the_picture_has_the_format_of_its_name(tmp_path: Path, name: str, start: bytes) -> None:
    file = tmp_path / name
    code, out, errors = command(tmp_path / "home", *RUN, "-o", str(file))
    assert (code, errors) == (0, "")
    assert file.read_bytes().startswith(start)
    assert out.endswith(f"The bars are simulated, not real prices.\n{file}: {file.stat().st_size:,} bytes\n")


def test_the_same_request_gives_the_same_bytes(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.html", "b.html", "a.svg", "b.svg")]
    for page, picture in (files[::2], files[1::2]):
        assert command(tmp_path / "home", *RUN, "--report", str(page), "--output", str(picture))[0] == 0
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[2].read_bytes() == files[3].read_bytes()
    text = files[0].read_text()
    assert "MACD_CROSSOVER on BTC/USD" in text
    assert "sim (raw), made of 1d bars" in text
    assert "SIMULATED" in files[2].read_text()


@pytest.mark.parametrize(
    ("option", "file", "reason"),
    [
        ("-o", "a.gif", "a.gif must end in .png, .jpg, .jpeg, .svg"),
        ("-o", "a", "a must end in .png, .jpg, .jpeg, .svg"),
        ("--report", "a.pdf", "a.pdf must end in .html, .htm"),
        ("-o", "none/a.png", "the folder {folder}/none does not exist"),
        ("--report", "folder.html", "folder.html: it is a folder"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_before_any_work(
    tmp_path: Path, option: str, file: str, reason: str
) -> None:
    (tmp_path / "folder.html").mkdir()
    code, out, errors = command(tmp_path / "home", *RUN, option, str(tmp_path / file))
    assert (code, out, errors.count("\n")) == (1, "", 1)
    assert reason.format(folder=tmp_path) in errors
    assert not (tmp_path / "home").exists()


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    file, link = tmp_path / "a.html", tmp_path / "link.html"
    file.write_text("old")
    link.symlink_to(file)
    write_output(link, b"new")
    assert (file.read_text(), link.is_symlink()) == ("new", True)
    file.unlink()
    file.mkdir()
    with pytest.raises(InvalidParameter, match="cannot write"):
        write_output(file, b"newer")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.html", "link.html"], "no temporary file is left"


def test_texts_of_a_spec_file_are_escaped(tmp_path: Path) -> None:
    spec, page = tmp_path / "mine.json", tmp_path / "mine.html"
    spec.write_text(json.dumps({**crossover(), "description": "<script>alert(1)</script>"}))
    code, _, errors = command(tmp_path / "home", "backtest", str(spec), *RUN[2:], "--report", str(page))
    assert (code, errors) == (0, "")
    assert "<script" not in page.read_text()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page.read_text()
