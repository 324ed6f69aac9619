"""Small file systems that can be filled and made read-only. Only this process and its children see them."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from pathlib import Path

_NEW_MOUNTS, _NEW_USER = 0x00020000, 0x10000000
_READ_ONLY, _REMOUNT, _RECURSIVE, _PRIVATE = 0x1, 0x20, 0x4000, 0x40000
_libc = ctypes.CDLL(None, use_errno=True)


class CannotMount(Exception):
    """This user may not mount file systems on this machine."""


def enter_private_mounts() -> None:
    """Give this process a list of mounts of its own. It must have one thread only. Raises `CannotMount`."""
    user, group = os.getuid(), os.getgid()
    _call("unshare", _NEW_MOUNTS if user == 0 else _NEW_MOUNTS | _NEW_USER)
    if user:
        # The same user as before, with the right to mount.
        with suppress(FileNotFoundError):
            Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    _call("mount", b"none", b"/", None, _RECURSIVE | _PRIVATE, None)


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc, name)(*arguments):
        raise CannotMount(f"{name}: {os.strerror(ctypes.get_errno())}")


class Disk:
    """A file system in memory. The process that mounted it frees it by ending."""

    def __init__(self, folder: Path, megabytes: int) -> None:
        self.folder = folder
        self._options = f"size={megabytes}m,mode=755".encode()
        folder.mkdir(parents=True, exist_ok=True)
        _call("mount", b"tmpfs", bytes(folder), b"tmpfs", 0, self._options)

    def fill(self) -> None:
        """Leave no free block."""
        with (self.folder / "ballast").open("wb") as file:
            space = os.statvfs(self.folder)
            if space.f_bavail:
                os.posix_fallocate(file.fileno(), 0, space.f_bavail * space.f_frsize)
        assert os.statvfs(self.folder).f_bavail == 0

    def free(self) -> None:
        """Give the space back."""
        (self.folder / "ballast").unlink()

    def set_writable(self, writable: bool) -> None:
        """Mount it again, for reading only or for writing too. No file may be open for writing."""
        flags = _REMOUNT if writable else _REMOUNT | _READ_ONLY
        _call("mount", b"tmpfs", bytes(self.folder), b"tmpfs", flags, self._options)
