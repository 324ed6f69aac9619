"""The names of principals."""

from __future__ import annotations

import re

OPERATOR = "local"
"""The principal of the user who started this desk on this machine. Other principals get their names when they log in."""

SUBJECT = re.compile(r"[a-z0-9._-]{1,64}")
"""The name of a principal."""

SHORTEST_PASSPHRASE = 12
LONGEST_PASSPHRASE = 1024
"""Characters of a passphrase with which a user signs in."""
