"""How often a campaign runs: less often in the ordinary run, as often as required in `make soak` (OPENBELL_SOAK=1).

In `make quick` (OPENBELL_QUICK=1) campaigns are a quarter as long and tests of properties try few examples; everything
else is the same.
"""

from __future__ import annotations

import os

SOAK = os.environ.get("OPENBELL_SOAK") == "1"
QUICK = os.environ.get("OPENBELL_QUICK") == "1"
QUICK_EXAMPLES = 10
"""Of a test of a property, in `make quick`."""


def runs(ordinary: int, *, soak: int) -> int:
    """The count of this run, for a constant of a test module; tests/test_requirements.py lists every one."""
    if SOAK:
        return soak
    return -(-ordinary // 4) if QUICK else ordinary
