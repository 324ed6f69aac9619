"""Limits of requests. Schemas of servers use them, so this module imports nothing."""

from __future__ import annotations

MAX_INDICATORS = 24
