"""The ledger: every decision, verdict, order, fill and alert as an entry in a chain of hashes.

An entry's hash covers its number, time, kind, key, content and the previous entry's hash, so that no entry can be edited,
removed or moved without breaking the chain. Removing or adding entries at the end would leave a valid chain. Therefore the
newest hash, the head, is also stored outside the database, and is durable before a write is acknowledged. An entry's content
is a whole row of its table, so that all tables can be rebuilt from the ledger; `openbell verify` compares the two.

Every hash begins with the number of its scheme, in entries, in heads and where one is printed: `1:9f86d081…`. A change of
what is hashed, or how, is a new scheme with a number of its own; entries of earlier schemes stay valid.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

SCHEME = 1
"""The only hash scheme so far: SHA-256 of the canonical JSON of `[1, seq, at, kind, key, body, prev]`."""
GENESIS = f"{SCHEME}:{'0' * 64}"
"""The hash before the first entry."""


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One entry of the ledger."""

    seq: int
    """The entry's number, from 1 on, without gaps."""
    at: float
    """When it was written, by the desk's clock."""
    kind: str
    key: str
    """The key of the row in the table of its kind."""
    body: str
    """The row as canonical JSON."""
    prev: str
    hash: str


@dataclass(frozen=True, slots=True)
class Head:
    """Number and hash of the newest entry, as stored outside the database."""

    seq: int
    hash: str


@dataclass(frozen=True, slots=True)
class LedgerFault:
    """A defect of the ledger: the number of the entry, and what is wrong."""

    seq: int
    reason: str


def canonical(body: Any) -> str:
    """Returns canonical JSON: the text that is hashed."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def seal(seq: int, at: float, kind: str, key: str, body: str, prev: str) -> LedgerEntry:
    """Returns an entry with its hash."""
    at = float(at)  # as the database returns it: 5 and 5.0 have different hashes
    return LedgerEntry(seq, at, kind, key, body, prev, digest(seq, at, kind, key, body, prev))


def digest(seq: int, at: float, kind: str, key: str, body: str, prev: str) -> str:
    """Returns the hash that an entry must have."""
    return f"{SCHEME}:{sha256(canonical([SCHEME, seq, at, kind, key, body, prev]).encode()).hexdigest()}"


def unknown_scheme(hash_: object) -> str:
    """Returns the words about a hash of another scheme; empty if there is none, also if it is no hash at all."""
    number, colon, _ = hash_.partition(":") if isinstance(hash_, str) else ("", "", "")
    if not colon or not number.isdecimal() or number == str(SCHEME):
        return ""
    return f"has hash scheme {number[:9]}, and this Openbell knows scheme {SCHEME}: use the Openbell that wrote it"


def goes_beyond(newest: Head, ends: Sequence[Head]) -> bool:
    """Returns True if a ledger has entries after the heads at which it may end, of which the committed one is first."""
    return newest not in ends and newest.seq > ends[0].seq


def check(
    entries: Iterable[LedgerEntry],
    heads: Iterable[Head] = (),
    ends: Sequence[Head] = (),
    beyond: str = "this home did not write them",
) -> Iterator[LedgerFault]:
    """Check the chain from its first entry; yields a fault for each break, and for each known head that is missing.

    `ends` are the heads at which the ledger may end, the committed head first. If given, later entries are a fault too, and
    `beyond` is its explanation.
    """
    wanted: dict[int, list[str]] = {}
    for head in (*heads, *ends[:1]):
        if head.seq:
            wanted.setdefault(head.seq, []).append(head.hash)
    expected, prev = 1, GENESIS
    covered = ends[0].seq if ends else 0
    for entry in entries:
        # A damaged database may return any type for the number.
        seq = entry.seq if type(entry.seq) is int else expected
        if entry.seq != expected:
            yield LedgerFault(expected, f"entry {expected} is missing; entry {entry.seq} is in its place")
        elif entry.prev != prev:
            yield LedgerFault(seq, f"entry {seq} does not follow the one before it")
        if unknown := unknown_scheme(entry.hash):
            yield LedgerFault(seq, f"entry {seq} {unknown}")
        elif not _sealed(entry):
            yield LedgerFault(seq, f"entry {seq} ({entry.kind} {entry.key}) was changed")
        if any(noted != entry.hash for noted in wanted.pop(seq, ())):
            yield LedgerFault(seq, f"entry {seq} is not the one that was noted as the head: it was rewritten")
        expected, prev = seq + 1, entry.hash
        if any(end.seq == seq and end.hash == entry.hash for end in ends):
            covered = max(covered, seq)
    if ends and goes_beyond(Head(expected - 1, prev), ends):
        count = expected - 1 - covered
        many = "1 entry comes" if count == 1 else f"{count} entries come"
        yield LedgerFault(covered + 1, f"{many} after the head that was noted (entry {covered}): {beyond}")
    for seq in sorted(wanted):
        where = f"the ledger ends at entry {expected - 1}, and its head was noted at {seq}: its end is cut off"
        yield LedgerFault(seq, where if seq >= expected else f"entry {seq} was noted as the head, and it is missing")


def _sealed(entry: LedgerEntry) -> bool:
    """Returns True if an entry's hash is correct; False also if its content cannot be hashed."""
    try:
        return digest(entry.seq, entry.at, entry.kind, entry.key, entry.body, entry.prev) == entry.hash
    except (TypeError, ValueError, RecursionError):
        return False
