"""How much may be asked for at once, in plain values: servers declare themselves from it without computing."""

from __future__ import annotations

MOST_INDICATORS = 24
