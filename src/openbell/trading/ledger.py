"""The ledger: every decision, verdict, order, fill and alert as an entry in a chain of hashes.

An entry's hash covers its number, time, kind, key, content and the hash before it, so that no entry can be edited, removed
or moved without breaking the chain. Cutting off the end, or adding to it, leaves a chain that is whole: that is why the
newest hash, the head, is also kept outside the database, durable before anything is acknowledged. An entry's content is a
whole row of its table, so the ledger alone rebuilds what it tells of, and `openbell verify` compares the two.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

GENESIS = "0" * 64


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger."""

    seq: int
    """From 1 on, without gaps."""
    at: float
    """The desk's clock."""
    kind: str
    key: str
    """Which row of its kind."""
    body: str
    """The row as JSON in its one canonical form."""
    prev: str
    hash: str


@dataclass(frozen=True, slots=True)
class Head:
    """The newest entry, as noted outside the database."""

    seq: int
    hash: str


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is not as it was written."""

    seq: int
    reason: str


def canonical(body: Any) -> str:
    """JSON in the one form that is hashed."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def seal(seq: int, at: float, kind: str, key: str, body: str, prev: str) -> Entry:
    """An entry with its hash."""
    at = float(at)  # as it will be read back: 5 and 5.0 are two texts
    return Entry(seq, at, kind, key, body, prev, digest(seq, at, kind, key, body, prev))


def digest(seq: int, at: float, kind: str, key: str, body: str, prev: str) -> str:
    """What an entry's hash must be."""
    return sha256(canonical([seq, at, kind, key, body, prev]).encode()).hexdigest()


def goes_beyond(newest: Head, ends: Sequence[Head]) -> bool:
    """Whether a ledger goes on after the heads at which it may end, of which the first is the standing one."""
    return newest not in ends and newest.seq > ends[0].seq


def check(
    entries: Iterable[Entry],
    heads: Iterable[Head] = (),
    ends: Sequence[Head] = (),
    beyond: str = "this home did not write them",
) -> Iterator[Fault]:
    """Walk the chain from its beginning; each break is a fault, and so is a noted head that it does not have.

    `ends` are the heads at which the ledger may end, the standing one first. With them, entries that come after are a fault
    too, and `beyond` is what it says of them.
    """
    wanted: dict[int, list[str]] = {}
    for head in (*heads, *ends[:1]):
        if head.seq:
            wanted.setdefault(head.seq, []).append(head.hash)
    expected, prev = 1, GENESIS
    covered = ends[0].seq if ends else 0
    for entry in entries:
        # A damaged database may give anything for a number.
        seq = entry.seq if type(entry.seq) is int else expected
        if entry.seq != expected:
            yield Fault(expected, f"entry {expected} is missing; entry {entry.seq} stands there")
        elif entry.prev != prev:
            yield Fault(seq, f"entry {seq} does not follow the one before it")
        if not _sealed(entry):
            yield Fault(seq, f"entry {seq} ({entry.kind} {entry.key}) was changed")
        if any(noted != entry.hash for noted in wanted.pop(seq, ())):
            yield Fault(seq, f"entry {seq} is not the one that was noted as the head: it was rewritten")
        expected, prev = seq + 1, entry.hash
        if any(end.seq == seq and end.hash == entry.hash for end in ends):
            covered = max(covered, seq)
    if ends and goes_beyond(Head(expected - 1, prev), ends):
        count = expected - 1 - covered
        many = "1 entry comes" if count == 1 else f"{count} entries come"
        yield Fault(covered + 1, f"{many} after the head that was noted (entry {covered}): {beyond}")
    for seq in sorted(wanted):
        where = f"the ledger ends at entry {expected - 1}, and its head was noted at {seq}: its end is cut off"
        yield Fault(seq, where if seq >= expected else f"entry {seq} was noted as the head, and it is missing")


def _sealed(entry: Entry) -> bool:
    """Whether an entry has the hash of what it says; what cannot be written as it should be has none."""
    try:
        return digest(entry.seq, entry.at, entry.kind, entry.key, entry.body, entry.prev) == entry.hash
    except (TypeError, ValueError, RecursionError):
        return False
