"""Lines and masks that the combinations of a sweep share, up to a number of bytes."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

import numpy.typing as npt

Arrays = tuple[npt.NDArray[Any], ...]


class LineCache(MutableMapping[object, Arrays]):
    """A mapping for `evaluate` that removes the arrays that were not read for the longest time. The newest always stay."""

    def __init__(self, most: int) -> None:
        self._most, self._bytes = most, 0
        self._arrays: dict[object, Arrays] = {}

    def __getitem__(self, key: object) -> Arrays:
        # A dictionary keeps the order of insertion: what is read is put last.
        found = self._arrays[key] = self._arrays.pop(key)
        return found

    def __setitem__(self, key: object, arrays: Arrays) -> None:
        self.pop(key, None)
        self._arrays[key] = arrays
        self._bytes += _size(arrays)
        while self._bytes > self._most and len(self._arrays) > 1:
            del self[next(iter(self._arrays))]

    def __delitem__(self, key: object) -> None:
        self._bytes -= _size(self._arrays.pop(key))

    def __iter__(self) -> Iterator[object]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    @property
    def bytes(self) -> int:
        """The size of all arrays."""
        return self._bytes


def _size(arrays: Arrays) -> int:
    return sum(each.nbytes for each in arrays)
