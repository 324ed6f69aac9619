"""The head file: its number only grows, and a torn or failed write never destroys the last good head."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from openbell.market.errors import StoreError
from openbell.stores.records import ledger_head_file as module
from openbell.stores.records.ledger_head_file import HeadFile
from openbell.trading.ledger import Head
from tests.stores.records import partner
from tests.stores.records.partner import Partner
from tests.stores.records.places import Place


def head(seq: int) -> Head:
    return Head(seq, f"{seq:064x}")


@pytest.fixture
def file(tmp_path: Path) -> Iterator[HeadFile]:
    file = HeadFile(tmp_path / "home" / "head")
    yield file
    file.close()


@contextmanager
def as_somebody_else() -> Iterator[None]:
    """Run the block as another user: root may write anywhere."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_without_a_file_there_is_no_head(file: HeadFile) -> None:
    assert file.read() is None
    assert not file.path.exists()


def test_the_head_of_an_empty_ledger_can_be_noted(file: HeadFile) -> None:
    file.note(head(0))
    assert file.read() == head(0)


def test_an_empty_file_holds_no_head(file: HeadFile) -> None:
    file.path.parent.mkdir()
    file.path.touch()
    assert file.read() is None


def test_the_newest_head_is_kept_whatever_is_noted_later(file: HeadFile) -> None:
    for seq in (1, 5, 3, 5, 9, 2):
        file.note(head(seq))
    assert file.read() == head(9)
    assert HeadFile(file.path).read() == head(9)


def test_an_older_head_is_durable_already(file: HeadFile, monkeypatch: pytest.MonkeyPatch) -> None:
    synchronised: list[int] = []
    monkeypatch.setattr(module, "_synchronise", synchronised.append)
    for seq in (5, 3, 5, 1):
        file.note(head(seq))
    assert len(synchronised) == 1


def test_only_the_owner_may_read_it(file: HeadFile) -> None:
    file.note(head(1))
    assert file.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_after_a_torn_write_the_previous_head_is_read(file: HeadFile, step: int) -> None:
    before = head(0)
    file.note(before)
    for seq in range(step, 10 * step, step):
        whole = file.path.read_bytes()
        file.note(head(seq))
        after = file.path.read_bytes()
        start = 0 if after[:128] != whole[:128].ljust(128, b"\0") else 128
        for torn in (1, 30, 64, 127):
            file.path.write_bytes(after[:start] + b"#" * torn + after[start + torn :])
            assert HeadFile(file.path).read() == before
        file.path.write_bytes(after)
        before = head(seq)


@pytest.mark.parametrize("content", [b"x", b"\0" * 256, b"1 2 3" + b" " * 123, b"\xff" * 256])
def test_a_file_that_names_no_head_is_damaged(file: HeadFile, content: bytes) -> None:
    file.path.parent.mkdir()
    file.path.write_bytes(content)
    with pytest.raises(StoreError, match="damaged"):
        file.read()
    file.reset(head(7))
    assert file.read() == head(7)


def test_resetting_notes_an_older_head(file: HeadFile) -> None:
    other = HeadFile(file.path)
    other.note(head(8))
    other.note(head(9))
    file.reset(head(4))
    assert file.read() == head(4)
    other.note(head(5))
    assert file.read() == head(5)
    other.close()


# Announced, then noted


def test_the_ledger_may_end_where_it_was_announced_until_that_is_noted(file: HeadFile) -> None:
    file.note(head(4))
    assert file.ends() == (head(4),)
    file.intend(head(4), head(6))
    assert file.ends() == (head(4), head(6))
    assert file.read() == head(4)
    assert HeadFile(file.path).ends() == (head(4), head(6))
    file.note(head(6))
    assert file.ends() == (head(6),)


def test_announcing_notes_the_current_end_with_the_same_synchronisation(
    file: HeadFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that wrote the end is about to note it and then finds it durable."""
    file.note(head(1))
    file.intend(head(1), head(2))
    synchronised: list[int] = []
    monkeypatch.setattr(module, "_synchronise", synchronised.append)
    file.intend(head(2), head(3))
    assert file.ends() == (head(2), head(3))
    file.note(head(2))
    assert len(synchronised) == 1


def test_the_announcement_of_a_failed_commit_is_overwritten(file: HeadFile) -> None:
    file.note(head(1))
    for number in range(5):
        never = Head(2 + number % 2, f"{number:064x}")
        file.intend(head(1), never)
        assert file.ends() == (head(1), never)
    file.intend(head(1), head(2))
    file.note(head(2))
    assert file.ends() == (head(2),)


def test_a_head_whose_announcement_failed_is_no_end(file: HeadFile, monkeypatch: pytest.MonkeyPatch) -> None:
    file.note(head(1))
    file.intend(head(1), head(2))
    with monkeypatch.context() as patch:
        patch.setattr(module, "_synchronise", broken)
        with pytest.raises(StoreError, match="Input/output error"):
            file.intend(head(2), head(3))
    assert file.ends() == (head(1), head(2))


def test_resetting_removes_announcements(file: HeadFile) -> None:
    file.note(head(4))
    file.intend(head(4), head(9))
    file.reset(head(2))
    assert file.ends() == (head(2),)


def test_a_file_in_which_only_an_announcement_can_be_read_is_damaged(file: HeadFile) -> None:
    file.note(head(1))
    file.intend(head(1), head(2))
    file.path.write_bytes(b"#" * 256 + file.path.read_bytes()[256:])
    with pytest.raises(StoreError, match="damaged"):
        file.ends()


def left(before: bytes, after: bytes) -> Iterator[bytes]:
    """Every possible file after a power failure during a write: each slot is old, new or garbage."""
    before, after = before.ljust(512, b"\0"), after.ljust(512, b"\0")
    choices = []
    for at in range(0, 512, 128):
        old, new = before[at : at + 128], after[at : at + 128]
        choices.append((old,) if old == new else (old, new, new[:50] + old[50:], b"#" * 128))
    yield from (b"".join(slots) for slots in product(*choices))


@pytest.mark.parametrize("seed", range(20))
def test_whenever_the_power_fails_the_ledger_ends_at_one_of_its_heads(file: HeadFile, seed: int) -> None:
    """Many writers whose commits succeed or fail and who note their heads with any delay."""
    chance = random.Random(seed)
    file.note(head(0))
    end, acknowledged, waiting = head(0), 0, list[Head]()
    announced = 0

    def check(before: bytes) -> None:
        after = file.path.read_bytes()
        for content in left(before, after):
            file.path.write_bytes(content)
            ends = HeadFile(file.path).ends()
            assert end in ends, f"seed {seed}: {end} is none of {ends}"
            assert ends[0].seq >= acknowledged
            assert ends[0].seq <= end.seq
        file.path.write_bytes(after)

    for _ in range(40):
        before = file.path.read_bytes()
        if chance.random() < 0.5:
            announced += 1
            wanted = Head(end.seq + chance.randrange(1, 4), f"{announced:064x}")
            file.intend(end, wanted)
            check(before)
            if chance.random() < 0.7:
                end = wanted
                waiting.append(end)
                check(file.path.read_bytes())
        elif waiting:
            noted = waiting.pop(chance.randrange(len(waiting)))
            file.note(noted)
            check(before)
            acknowledged = max(acknowledged, noted.seq)


def broken(_fd: int) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_file_that_was_removed_is_followed_by_a_new_one(file: HeadFile) -> None:
    file.note(head(1))
    file.path.unlink()
    file.note(head(2))
    assert HeadFile(file.path).read() == head(2)


def test_a_head_whose_synchronisation_failed_is_not_read_by_others(
    file: HeadFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.note(head(1))
    with monkeypatch.context() as patch:
        patch.setattr(module, "_synchronise", broken)
        with pytest.raises(StoreError, match=f"cannot write {file.path}: Input/output error"):
            file.note(head(2))
    assert HeadFile(file.path).read() == head(1)
    file.note(head(2))
    assert file.read() == head(2)


def test_a_folder_that_cannot_be_written_is_named() -> None:
    with TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        file = HeadFile(folder / "head")
        folder.chmod(0o555)
        with as_somebody_else():
            assert file.read() is None
            for act in (file.note, file.reset):
                with pytest.raises(StoreError, match=f"cannot write {file.path}: Permission denied"):
                    act(head(1))


def test_a_path_that_is_no_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "head").mkdir()
    file = HeadFile(tmp_path / "head")
    with pytest.raises(StoreError, match=f"cannot read {file.path}: Is a directory"):
        file.read()
    with pytest.raises(StoreError, match=f"cannot write {file.path}: Is a directory"):
        file.note(head(1))


def test_processes_that_note_at_once_never_go_backwards(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with ExitStack() as stack:
        partners = [stack.enter_context(Partner(partner.note, place, first, 3, 60)) for first in (1, 2, 3)]
        for each in partners:
            each.go()
        assert [each.hear() for each in partners] == ["done"] * 3
    assert place.head.read() == head(180)
