"""The size and the timeouts of the pool of connections to PostgreSQL."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pool:
    """The number of connections, and timeouts in seconds."""

    least: int = 2
    most: int = 10
    idle: float = 300.0
    connect: float = 5.0
    timeout: float = 10.0
    """For one statement."""
