"""Marks results about specs that somebody has submitted: their names and texts come from outside."""

from __future__ import annotations

from openbell.desk.research.strategies.specs import KnownSpec, SpecOrigin
from openbell.protocol.result_fields import Foreign, mark


def mark_spec(item: Foreign, known: KnownSpec) -> None:
    """Mark an item about a submitted spec; one of the library needs no mark."""
    if known.origin is SpecOrigin.SUBMITTED:
        mark(item, known.principal)
