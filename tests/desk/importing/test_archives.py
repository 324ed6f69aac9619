"""Archives and pipes as they arrive: nested, encrypted, with odd names, with folders, and packed far too well."""

from __future__ import annotations

import gzip
import io
import os
import stat
import threading
import zipfile
import zlib
from pathlib import Path

import pytest

from openbell.desk.importing import ImportOptions, content, read
from openbell.market.errors import InvalidParameter
from openbell.market.instruments import parse
from tests.desk.importing.files import NOW, Files, rows_of

HEADER = "timestamp,open,high,low,close,volume\n"
FIRST, SECOND = (f"2025-09-19T13:3{n + 1}:00Z,10,12,9,1{n},100\n" for n in (0, 1))
AAPL = ImportOptions(parse("AAPL"))


def zipped(*members: tuple[str | zipfile.ZipInfo, bytes | str]) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return sink.getvalue()


def entry(name: str, mode: int) -> zipfile.ZipInfo:
    made = zipfile.ZipInfo(name)
    made.external_attr = mode << 16
    return made


def refusal(files: Files, data: bytes) -> str:
    with pytest.raises(InvalidParameter) as caught:
        files.series(data, "x.zip")
    assert "\n" not in caught.value.message
    return caught.value.message


def test_a_zip_in_a_zip_is_read_and_a_third_one_is_named(files: Files) -> None:
    inner = zipped(("bars.csv", HEADER + FIRST))
    assert len(files.one(zipped(("inner.zip", inner)), "x.zip").bars) == 1
    deep = refusal(files, zipped(("middle.zip", zipped(("inner.zip", inner)))))
    assert "x.zip: middle.zip: inner.zip: is an archive inside 2 others" in deep


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_both_read(files: Files) -> None:
    found = files.series(zipped(("a.csv", HEADER + FIRST), ("a.csv", HEADER + SECOND)), "x.zip")
    assert [row[4] for each in found for row in rows_of(each.bars)] == [10.0, 11.0]


def test_an_encrypted_member_says_what_to_do(files: Files) -> None:
    data = bytearray(zipped(("bars.csv", HEADER + FIRST)))
    for signature, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):  # the flags of both headers
        data[data.index(signature) + at] |= 1
    assert refusal(files, bytes(data)).endswith(
        "bars.csv: is encrypted: unpack it with its password and import the file"
    )


def test_folders_and_empty_names_in_an_archive_are_left_out(files: Files) -> None:
    folders: list[tuple[str | zipfile.ZipInfo, bytes]] = [
        ("folder/", b""),
        (entry("unmarked", stat.S_IFDIR | 0o755), b""),
    ]
    found = files.one(zipped(*folders, ("folder/bars.csv", HEADER + FIRST)), "x.zip")
    assert found.file.endswith("x.zip: folder/bars.csv")
    for name in (".", "", "/"):
        with pytest.raises(InvalidParameter, match=r"x\.zip"):
            files.series(zipped((entry(name, 0), "no bars")), "x.zip")
    assert "holds no file" in refusal(files, zipped())


def test_attack_names_in_an_archive_reach_neither_the_terminal_nor_the_disk(files: Files) -> None:
    name = "../../\x1b]0;owned\x07\u202e\r\n" + "x" * 500 + ".csv"
    message = refusal(files, zipped((name, "no bars at all")))
    assert not {"\x1b", "\x07", "\u202e", "\r"} & set(message)
    assert len(message) < 400 + len(str(files.folder))
    assert [each.name for each in files.folder.iterdir()] == ["x.zip"]


def test_a_link_in_an_archive_is_not_followed(files: Files) -> None:
    assert "is a link" in refusal(files, zipped((entry("bars.csv", stat.S_IFLNK | 0o777), "/etc/passwd")))


def test_attack_an_archive_that_unpacks_to_many_times_its_size_is_refused_before_it_is_unpacked(files: Files) -> None:
    large = b"0" * (content.FREE_BYTES + 2**20)
    packed = {"x.csv.gz": zlib_gzip(large), "x.zip": zipped(("bars.csv", large))}
    for name, data in packed.items():
        assert len(data) * content.MOST_TIMES < len(large)
        with pytest.raises(InvalidParameter, match="unpacks to more than 200 times its size"):
            files.series(data, name)


def zlib_gzip(data: bytes) -> bytes:
    return gzip.compress(data, zlib.Z_BEST_COMPRESSION)


def test_a_pipe_is_read_to_its_end(files: Files) -> None:
    pipe = piped(files.folder / "pipe")
    writer = threading.Thread(target=lambda: pipe.write_text(HEADER + FIRST + SECOND))
    writer.start()
    (found,) = read(pipe, AAPL, NOW)
    writer.join()
    assert len(found.bars) == 2


def test_a_pipe_to_which_nobody_writes_is_given_up(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "_PATIENCE", 0.01)
    with pytest.raises(InvalidParameter, match="is a pipe to which nothing was written"):
        read(piped(files.folder / "pipe"), AAPL, NOW)


def test_attack_a_pipe_without_end_is_refused(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "MOST_BYTES", 2**20)
    pipe = piped(files.folder / "pipe")

    def write() -> None:
        with pytest.raises(BrokenPipeError), pipe.open("wb", buffering=0) as sink:
            while True:
                sink.write(b"0" * 2**16)

    writer = threading.Thread(target=write)
    writer.start()
    with pytest.raises(InvalidParameter, match="holds more than 1 MB"):
        read(pipe, AAPL, NOW)
    writer.join()


def piped(path: Path) -> Path:
    os.mkfifo(path)
    return path
