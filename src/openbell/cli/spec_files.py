"""Specs of strategies, as commands name them: canonical ones by name, others by file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from openbell.cli.app import fail
from openbell.market.errors import InvalidParameter

if TYPE_CHECKING:
    from openbell.strategies.spec import Spec


def spec_named(name: str) -> Spec:
    """Returns the spec of a canonical strategy or of a file. Raises `OpenbellError`; exits if the file cannot be read."""
    from openbell.market.nearest import did_you_mean
    from openbell.strategies.library import canonical

    path = Path(name)
    if path.suffix in {".yaml", ".yml", ".json"}:
        return read_spec_file(path)
    known = canonical()
    if name.upper() not in known:
        advice = did_you_mean(name, known) or "; openbell strategies list has them all"
        raise InvalidParameter(f"no strategy {name[:80]!r}{advice}")
    return known[name.upper()]


def read_spec_file(path: Path) -> Spec:
    """Returns the spec of a YAML or JSON file. Raises `SpecRefused`, and exits if the file cannot be read."""
    from openbell.strategies.reading import read_spec
    from openbell.strategies.yaml_text import read_yaml

    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        fail(f"{path}: cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        fail(f"{path}: is not a text file in UTF-8")
    return read_spec(read_yaml(text))
