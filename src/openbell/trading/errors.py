"""Bad arguments that the contracts name by themselves."""

from __future__ import annotations

from openbell.market.errors import InputError


class InvalidSide(InputError):
    """Neither a buy nor a sale."""


class InvalidSize(InputError):
    """Not a positive number of units."""


class InvalidAction(InputError):
    """Neither buy, sell nor hold."""


class InvalidConfidence(InputError):
    """Not between 0 and 1."""


class ReasoningTooLong(InputError):
    """More than a journal entry holds."""
