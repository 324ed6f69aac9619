"""Hides pandas, which an installation does not have: Arrow would import it, which takes most of a short process's time."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec


class _Missing:
    """An import hook that hides pandas."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError(name=name)
        return None


def without_pandas() -> None:
    """Make the import of pandas fail in this process."""
    sys.meta_path.insert(0, _Missing())
