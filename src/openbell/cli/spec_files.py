"""Strategies as commands name them: canonical and submitted ones by name or id, others by file."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from openbell.cli.app import fail
from openbell.market.instruments import parse

if TYPE_CHECKING:
    from openbell.desk.desk import Desk
    from openbell.desk.research.strategies.desk import Chosen
    from openbell.desk.research.strategies.specs import KnownSpec
    from openbell.desk.settings import Settings
    from openbell.strategies.spec import Spec

T = TypeVar("T")
_FILES = frozenset({".yaml", ".yml", ".json"})
_MOST_BYTES = 1_000_000


def strategy_named(settings: Settings, name: str, symbol: str) -> Chosen:
    """Returns a strategy for a symbol: of a file, of the name of a spec, or of the id of a spec or an implementation.

    Raises `OpenbellError`; exits if the file cannot be read.
    """
    from openbell.desk.research.strategies.specs import canonical_named
    from openbell.desk.settings.principals import OPERATOR

    spec = read_spec_file(Path(name)) if Path(name).suffix in _FILES else canonical_named(name)
    if spec is not None:
        from openbell.desk.research.strategies.desk import default_of

        return default_of(spec)
    # At another time than the present, implementations that were not recorded are found again by a search.
    instrument = parse(symbol) if settings.other_clock else None
    return _reading(settings, lambda desk: desk.strategies.choose(OPERATOR, name, instrument))


def spec_named(settings: Settings, name: str) -> KnownSpec:
    """Returns the operator's or the canonical spec of a name or an id. Raises `UnknownStrategy`."""
    from openbell.desk.settings.principals import OPERATOR

    return _reading(settings, lambda desk: desk.strategies.advice.spec(OPERATOR, name))


def submitted_specs(settings: Settings) -> list[KnownSpec]:
    """Returns the specs that the operator has submitted, oldest first."""
    from openbell.desk.settings.principals import OPERATOR

    return _reading(settings, lambda desk: desk.strategies.specs.own(OPERATOR))


def _reading(settings: Settings, work: Callable[[Desk], Awaitable[T]]) -> T:
    """Returns what `work` reads from a desk that writes nothing: in a new home it creates no records."""
    from openbell.desk.desk import Desk

    async def read() -> T:
        async with Desk(replace(settings, read_only=True)) as desk:
            return await work(desk)

    return asyncio.run(read())


def read_spec_file(path: Path) -> Spec:
    """Returns the spec of a YAML or JSON file. Raises `SpecRefused`, and exits if the file cannot be read."""
    from openbell.strategies.reading import read_spec

    return read_spec(read_data(path))


def read_data(path: Path) -> Any:
    """Returns the data of a YAML or JSON file. Raises `SpecRefused`, and exits if the file cannot be read."""
    from openbell.strategies.yaml_text import read_yaml

    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            fail(f"{path}: is not a regular file")
        if found.st_size > _MOST_BYTES:
            fail(f"{path}: has {found.st_size:,} bytes, and a spec has at most {_MOST_BYTES:,}")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        fail(f"{path}: cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        fail(f"{path}: is not a text file in UTF-8")
    return read_yaml(text)
