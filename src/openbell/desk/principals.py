"""Whose desk it is."""

from __future__ import annotations

OPERATOR = "local"
"""The principal of whoever started this desk on this machine. Every other principal is named by who admitted it."""
