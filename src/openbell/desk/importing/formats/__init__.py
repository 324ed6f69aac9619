"""The file formats: one module for each, which defines `FORMAT`. `all_formats` finds them."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from openbell.desk.importing.layout import FIELDS, Format, Layout, Sample, listed, missing, quoted
from openbell.market.errors import InvalidParameter


@cache
def all_formats() -> tuple[Format, ...]:
    """Returns all formats in the order in which they are tried."""
    names = sorted(each.name for each in pkgutil.iter_modules(__path__))
    found: list[Format] = [importlib.import_module(f"{__name__}.{name}").FORMAT for name in names]
    return tuple(sorted(found, key=lambda each: each.rank))


def recognise(sample: Sample) -> tuple[Format, Layout]:
    """Returns the format of a file and its layout. Raises `InvalidParameter` if no format fits."""
    for each in all_formats():
        if (layout := each.recognise(sample)) is not None:
            return each, layout
    if not sample.has_header():
        raise InvalidParameter(
            f"has no header, and its {len(sample.rows[0])} columns are those of no known format: "
            f"add a first line that names them, such as {','.join(FIELDS)}"
        )
    lacks = missing(sample.names)
    raise InvalidParameter(
        f"missing column {', '.join(lacks)} (the header names {listed([quoted(name) for name in sample.names])}; "
        f"needed are {','.join(FIELDS)})"
    )
