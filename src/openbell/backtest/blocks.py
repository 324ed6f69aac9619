"""Sums of the returns of a run over blocks of consecutive bars: all that cross-validation of a sweep needs to keep."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from openbell.market.bars import Values


class BlockSums(NamedTuple):
    """One value per block; NaN if the run has no returns because its equity was 0 or less."""

    sums: Values
    squares: Values
    """Sums of the squares of the returns."""


def block_edges(bars: int, blocks: int) -> list[int]:
    """Returns the first bar of each block, and the number of bars; lengths differ by at most one bar."""
    return [bars * at // blocks for at in range(blocks + 1)] if blocks else [0]


def block_sums(returns: Values | None, edges: list[int]) -> BlockSums:
    """Returns the sums over the blocks between edges."""
    if returns is None:
        return undefined(len(edges) - 1)
    parts = [returns[first:end] for first, end in pairwise(edges)]
    return BlockSums(np.array([each.sum() for each in parts]), np.array([np.square(each).sum() for each in parts]))


def undefined(blocks: int) -> BlockSums:
    """Returns the sums of a run without returns."""
    return BlockSums(np.full(blocks, np.nan), np.full(blocks, np.nan))
