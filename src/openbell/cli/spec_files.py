"""Spec files of strategies, as commands read them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from openbell.cli.app import fail

if TYPE_CHECKING:
    from openbell.strategies.spec import Spec


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
