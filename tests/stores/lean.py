"""For scripts: no pandas, as in an installation. Arrow would spend most of a short process on loading it."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec


class _Missing:
    """Finds nothing, and ends the search."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError(name=name)
        return None


def without_pandas() -> None:
    """Let the import of pandas fail in this process."""
    sys.meta_path.insert(0, _Missing())
