"""How often a campaign runs: less often in the ordinary run, as often as required in `make soak` (OPENBELL_SOAK=1)."""

from __future__ import annotations

import os

SOAK = os.environ.get("OPENBELL_SOAK") == "1"


def runs(ordinary: int, *, soak: int) -> int:
    """The count of this run, for a constant of a test module; tests/test_requirements.py lists every one."""
    return soak if SOAK else ordinary
