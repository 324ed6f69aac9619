"""Loads the part of ccxt for one exchange on first use. `import ccxt` loads all of its exchanges, which takes 0.9 s and 100
MB.

The packages of ccxt only collect the classes of their modules. In their place stand packages that import a module when its
class is first used.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from openbell.market.errors import SettingsError

REST, SOCKETS = "ccxt.async_support", "ccxt.pro"
_PACKAGES = ("ccxt", "ccxt.async_support", "ccxt.pro")


@dataclass(frozen=True, slots=True)
class Library:
    """ccxt's classes for one exchange."""

    rest: Any
    """The class for HTTP."""
    sockets: Any | None
    """The class for WebSockets; None if ccxt has none for this exchange."""
    errors: Any
    """The module with ccxt's exceptions."""


@cache
def load(exchange: str) -> Library:
    """Imports ccxt and returns the exchange's classes. Raises `SettingsError` if ccxt or the exchange is missing."""
    try:
        rest = exchange_class(REST, exchange)
        sockets = exchange_class(SOCKETS, exchange)
        errors = import_module("ccxt.base.errors")
    except ImportError as missing:
        raise SettingsError(
            f"The feed ccxt:{exchange} needs a package that is not installed ({missing}): pip install 'openbell[ccxt]'"
        ) from missing
    if rest is None:
        known = modules_of(REST)
        near = get_close_matches(exchange.lower(), known, 3)
        hint = f"did you mean {' or '.join(near)}?" if near else "see https://docs.ccxt.com for its exchanges"
        raise SettingsError(f"ccxt has no exchange {exchange[:40]!r}: {hint}", exchange=exchange[:40], near=near)
    return Library(rest, sockets, errors)


class _Package(ModuleType):
    """A package whose attributes are the classes of its modules: `ccxt.pro.kraken` is a class, as in ccxt itself."""

    def __init__(self, name: str, spec: ModuleSpec) -> None:
        super().__init__(name)
        self.__spec__, self.__path__ = spec, list(spec.submodule_search_locations or ())
        self.__file__ = spec.origin

    def __setattr__(self, name: str, value: object) -> None:
        # Python sets each imported module as an attribute of its package.
        super().__setattr__(name, getattr(value, name, value) if isinstance(value, ModuleType) else value)

    def __getattr__(self, name: str) -> Any:
        if name == "exchanges":
            return modules_of(self.__name__)
        if name in modules_of(self.__name__):
            import_module(f"{self.__name__}.{name}")
            return self.__dict__[name]
        # Exceptions and constants, which the packages of ccxt have besides the exchanges.
        for source in ("errors", "exchange"):
            if (found := getattr(import_module(f"ccxt.base.{source}"), name, None)) is not None:
                return found
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


@cache
def modules_of(package: str) -> list[str]:
    """Returns the names of the modules in one of ccxt's packages: one for each exchange."""
    spec = find_spec(package)
    folders = spec.submodule_search_locations if spec else None
    return sorted(path.stem for folder in folders or () for path in Path(folder).glob("[!_]*.py"))


def exchange_class(package: str, exchange: str) -> Any:
    """Returns the class of an exchange in `ccxt.async_support` or `ccxt.pro`; None if there is none.

    Raises `ImportError` if ccxt or one of its dependencies is not installed.
    """
    for name in _PACKAGES:
        if name in sys.modules:
            import_module(name)  # raises if it was marked as missing
        else:
            _stand_in(name)
    if exchange not in modules_of(package):
        return None
    return getattr(import_module(f"{package}.{exchange}"), exchange)


def _stand_in(name: str) -> None:
    """Put a package in the place of one of ccxt's."""
    if (spec := find_spec(name)) is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    sys.modules[name] = made = _Package(name, spec)
    parent, _, own = name.rpartition(".")
    if parent:
        vars(sys.modules[parent])[own] = made
