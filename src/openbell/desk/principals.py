"""The principal of the local operator."""

from __future__ import annotations

OPERATOR = "local"
"""The principal of the user who started this desk on this machine. Other principals get their names when they log in."""
