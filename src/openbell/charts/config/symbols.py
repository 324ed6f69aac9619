"""The form of a chart config's symbol."""

from __future__ import annotations

import re

SYMBOL = re.compile(r"[A-Z0-9_]{1,20}:[A-Z0-9._!&/-]{1,30}")
"""EXCHANGE:SYMBOL, in upper case."""
