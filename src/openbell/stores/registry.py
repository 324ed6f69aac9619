"""Finds the stores of bars: the packages in stores/ that define STORE, a `StoreBackend`.

Desk, settings, doctor, health and backup ask the backend that the settings select. It does not load its store before that is
opened, because the settings are read first.
"""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from openbell import stores
from openbell.market.provenance import Origin

if TYPE_CHECKING:
    from openbell.stores.port import BarStore


@dataclass(frozen=True, slots=True)
class StoreSelection:
    """What a desk says about its store."""

    settings: Mapping[str, Any]
    """All settings by name."""
    market: Path
    """The folder of the market: the home, or that of a simulated market."""
    simulated: bool
    shared: bool
    """True if the desk has no live feed: then other programs may write to a database."""


class StoreBackend(ABC):
    """One kind of store, as a desk has selected it."""

    title: ClassVar[str]
    """What it keeps bars in, for messages."""
    place: ClassVar[tuple[str, ...]] = ()
    """The settings that name where its bars are; the first one selects it. Empty for the store of all other desks."""
    folders: ClassVar[str]
    """A glob pattern for its folders in that of a market; each has a buffer."""
    is_remote: ClassVar[bool] = False
    """True if most of its bars are not in the home."""
    unreachable: ClassVar[str] = ""
    """What to do if it cannot be reached."""

    def __init__(self, selected: StoreSelection) -> None:
        self._selected = selected

    @property
    def origins(self) -> frozenset[Origin]:
        """The origins whose bars may be stored: simulated ones are never served as real ones."""
        simulated = {Origin.SIMULATED}
        return frozenset(simulated if self._selected.simulated else set(Origin) - simulated)

    @property
    @abstractmethod
    def folder(self) -> Path:
        """The folder of its buffer and metadata, and of its bars if they are in the home."""

    @property
    def has_bars(self) -> bool:
        """Returns False if it certainly has no bars: to open it would create its folder."""
        return self.is_remote or self.folder.exists()

    @abstractmethod
    def open(self) -> BarStore:
        """Open the store. Raises `StoreError`."""

    @abstractmethod
    def view(self) -> BarStore:
        """Open the store without changing anything in the home. Raises `StoreError`."""

    @classmethod
    def restored(cls, _folder: Path) -> BarStore | None:
        """Open the bars in a folder of a restored home; None if they are elsewhere."""
        return None

    def where(self) -> str:
        """Where bars are stored, for messages; does not open the store."""
        return str(self.folder)

    def backup_notes(self) -> list[str]:
        """What a backup of the home does not hold, and the command that copies it, by line."""
        return []

    def refused_write(self) -> tuple[str, str] | None:
        """Try a write besides that to the buffer, and take it back. Returns why it is refused, and what to do then."""
        return None


@cache
def all_backends() -> tuple[type[StoreBackend], ...]:
    """Returns every kind of store, that of desks which select no other one first."""
    packages = sorted(each.name for each in pkgutil.iter_modules(stores.__path__) if each.ispkg)
    modules = (importlib.import_module(f"{stores.__name__}.{name}") for name in packages)
    found: list[type[StoreBackend]] = [module.STORE for module in modules if hasattr(module, "STORE")]
    return tuple(sorted(found, key=lambda each: bool(each.place)))


def backend_of(selected: StoreSelection) -> StoreBackend:
    """Returns the store that the settings select."""
    default, *others = all_backends()
    return next((each for each in others if selected.settings[each.place[0]]), default)(selected)
