"""Errors for arguments that have an error code of their own in the contracts."""

from __future__ import annotations

from openbell.market.errors import InputError


class InvalidSide(InputError):
    """The side is neither buy nor sell."""


class InvalidSize(InputError):
    """The size is not a positive number."""


class InvalidAction(InputError):
    """The action is not buy, sell or hold."""


class InvalidConfidence(InputError):
    """The confidence is not between 0 and 1."""


class ReasoningTooLong(InputError):
    """The reasoning is longer than a journal entry may be."""
