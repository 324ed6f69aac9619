"""Sizes of the pages of Parquet files, from the headers of the pages: the metadata at the end of a file may state others."""

from __future__ import annotations

_DEPTH = 8
"""Levels of a page header; those of real files have 3."""
_FIXED = {1: 0, 2: 0, 3: 1, 7: 8}
"""Bytes of values by their type in Thrift's compact protocol; true and false are types."""
_NUMBERS = frozenset({4, 5, 6})
_BINARY, _LIST, _SET, _STRUCT = 8, 9, 10, 12
_UNPACKED, _PACKED = 2, 3
"""Fields of a page header: its page's bytes."""


def unpacked_bytes(data: bytes, begin: int, end: int) -> int:
    """Returns how many bytes the pages at `begin` to `end` of a file unpack to. Raises `ValueError` if they are no pages."""
    total = 0
    reader = _Reader(data, begin)
    while reader.at < end:
        sizes = reader.page_header()
        unpacked, packed = sizes.get(_UNPACKED, -1), sizes.get(_PACKED, -1)
        if unpacked < 0 or packed < 0:
            raise ValueError("a page without its sizes")
        total += unpacked
        reader.at += packed
    return total


class _Reader:
    """Reads Thrift's compact protocol."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self.at = at

    def page_header(self) -> dict[int, int]:
        """Returns the numbers of a page header by field. Raises `ValueError`."""
        try:
            return self._struct(_DEPTH)
        except IndexError:
            raise ValueError("a page header that does not end") from None

    def _struct(self, depth: int) -> dict[int, int]:
        if not depth:
            raise ValueError("a page header with too many levels")
        found: dict[int, int] = {}
        field = 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self._number()
            kind = head & 15
            if kind in _NUMBERS:
                found[field] = self._number()
            else:
                self._skip(kind, depth)
        return found

    def _skip(self, kind: int, depth: int) -> None:
        if kind in _FIXED:
            self.at += _FIXED[kind]
        elif kind in _NUMBERS:
            self._number()
        elif kind == _BINARY:
            length = self._varint()
            self.at += length
        elif kind in {_LIST, _SET}:
            head = self._byte()
            count = self._varint() if head >> 4 == 15 else head >> 4
            if count > len(self._data):
                raise ValueError("a page header with too many entries")
            for _ in range(count):  # those that are true or false have a byte here
                self._skip(3 if head & 15 in {1, 2} else head & 15, depth)
        elif kind == _STRUCT:
            self._struct(depth - 1)
        else:
            raise ValueError("a page header with a field of another type")

    def _byte(self) -> int:
        found = self._data[self.at]
        self.at += 1
        return found

    def _varint(self) -> int:
        value = shift = 0
        while (part := self._byte()) & 128:
            value |= (part & 127) << shift
            shift += 7
            if shift > 63:
                raise ValueError("a number with too many bytes")
        return value | part << shift

    def _number(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
