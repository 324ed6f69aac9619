"""The ledger: a valid chain passes, and every manipulation is found."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from hashlib import sha256
from typing import Any

import pytest

from openbell.trading.evidence import bar_hash
from openbell.trading.ledger import GENESIS, Head, LedgerEntry, canonical, check, digest, seal
from tests.counts import runs
from tests.trading.samples import minutes

FIELDS = ("seq", "at", "kind", "key", "body", "prev", "hash")
ROUNDS = runs(500, soak=10_000)


def chain(count: int, suffix: str = "") -> list[LedgerEntry]:
    entries: list[LedgerEntry] = []
    prev = GENESIS
    for seq in range(1, count + 1):
        body = canonical({"id": f"o{seq}", "quantity": str(seq), "note": "Grüße" + suffix, "at": seq / 7})
        entries.append(seal(seq, 1_700_000_000 + seq / 3, ("order", "fill", "verdict")[seq % 3], f"o{seq}", body, prev))
        prev = entries[-1].hash
    return entries


def head(entries: list[LedgerEntry]) -> Head:
    return Head(entries[-1].seq, entries[-1].hash)


def sealed_again(entries: list[LedgerEntry]) -> list[LedgerEntry]:
    """Returns the same content with new, correct hashes, as a skilled forger would write it."""
    prev, found = GENESIS, []
    for seq, each in enumerate(entries, 1):
        found.append(seal(seq, each.at, each.kind, each.key, each.body, prev))
        prev = found[-1].hash
    return found


def reasons(entries: list[LedgerEntry], *heads: Head) -> list[str]:
    return [fault.reason for fault in check(entries, heads)]


def test_a_whole_chain_has_no_fault() -> None:
    entries = chain(12)
    assert reasons(entries, head(entries), Head(5, entries[4].hash), Head(0, GENESIS)) == []
    assert reasons([]) == []
    assert reasons([], Head(0, GENESIS)) == []


def test_a_hash_covers_every_field_but_itself() -> None:
    one = chain(1)[0]
    parts: dict[str, Any] = {name: getattr(one, name) for name in FIELDS[:-1]}
    assert digest(**parts) == one.hash
    other: dict[str, Any] = {"seq": 2, "at": 0.5, "kind": "alert", "key": "x", "body": "{}", "prev": "1" * 64}
    assert len({digest(**parts | {name: value}) for name, value in other.items()} | {one.hash}) == 7


def test_every_hash_names_its_scheme() -> None:
    content = b'[1,1,5.0,"order","a","{}","1:' + b"0" * 64 + b'"]'
    assert seal(1, 5, "order", "a", "{}", GENESIS).hash == f"1:{sha256(content).hexdigest()}"


def test_an_entry_of_an_unknown_scheme_is_refused_by_name() -> None:
    entries = chain(4)
    later = replace(entries[3], hash=f"2:{entries[3].hash[2:]}")
    refused = "entry 4 has hash scheme 2, and this Openbell knows scheme 1: use the Openbell that wrote it"
    assert reasons([*entries[:3], later], Head(4, later.hash)) == [refused]
    for damaged in ("", "f" * 64, "x:y", ":", entries[3].hash[2:]):
        assert reasons([*entries[:3], replace(later, hash=damaged)]) == ["entry 4 (fill o4) was changed"]


def test_moving_text_between_two_fields_changes_the_hash() -> None:
    assert digest(1, 1.0, "ab", "c", "{}", GENESIS) != digest(1, 1.0, "a", "bc", "{}", GENESIS)


def test_a_body_has_one_form() -> None:
    assert canonical({"b": 1, "a": "ü"}) == canonical({"a": "ü", "b": 1}) == '{"a":"ü","b":1}'
    with pytest.raises(ValueError, match="JSON"):
        canonical(float("nan"))


def test_an_int_time_has_the_hash_of_the_float_that_is_read_back() -> None:
    entry = seal(1, 5, "order", "a", "{}", GENESIS)
    assert repr(entry.at) == "5.0"
    assert reasons([replace(entry, at=5.0)], Head(1, entry.hash)) == []


# Manipulations


def test_a_fault_names_the_entry_and_the_manipulation() -> None:
    entries = chain(6)
    noted = head(entries)
    edited = [*entries[:2], replace(entries[2], body="{}"), *entries[3:]]
    assert reasons(edited, noted) == ["entry 3 (order o3) was changed"]
    removed = entries[:2] + entries[3:]
    assert reasons(removed, noted) == ["entry 3 is missing; entry 4 is in its place"]
    rehashed = [*entries[:2], seal(3, 1.0, "order", "o3", "{}", entries[2].prev), *entries[3:]]
    assert reasons(rehashed, noted) == ["entry 4 does not follow the one before it"]
    assert reasons(entries[:4], noted) == [
        "the ledger ends at entry 4, and its head was noted at 6: its end is cut off"
    ]
    assert reasons([], noted) == ["the ledger ends at entry 0, and its head was noted at 6: its end is cut off"]
    assert [fault.seq for fault in check(removed, [Head(3, entries[2].hash)])] == [3, 3]
    assert reasons(removed, Head(3, entries[2].hash))[-1] == "entry 3 was noted as the head, and it is missing"


def test_without_a_noted_head_a_cut_end_cannot_be_seen() -> None:
    assert reasons(chain(6)[:4]) == []


def test_an_edit_with_all_hashes_computed_again_is_found_by_the_head() -> None:
    entries = chain(9)
    for number in range(9):
        forged = list(entries)
        forged[number] = replace(forged[number], body='{"id":"mine"}')
        forged = sealed_again(forged)
        assert reasons(forged) == []
        assert reasons(forged, head(entries)) == ["entry 9 is not the one that was noted as the head: it was rewritten"]


def test_every_noted_head_counts_even_two_of_one_number() -> None:
    entries, others = chain(4), chain(4, "other")
    assert reasons(entries, head(others), head(entries)) == reasons(entries, head(entries), head(others))
    assert len(reasons(entries, head(others), head(entries))) == 1
    assert reasons(entries, Head(2, entries[1].hash), Head(9, "x")) == [
        "the ledger ends at entry 4, and its head was noted at 9: its end is cut off"
    ]


def ended(entries: list[LedgerEntry], *ends: Head) -> list[str]:
    return [fault.reason for fault in check(entries, ends=ends)]


def test_a_ledger_may_end_at_its_stored_head_or_at_the_announced_one() -> None:
    entries = chain(6)
    heads = [Head(each.seq, each.hash) for each in entries]
    assert ended(entries, heads[5]) == []
    assert ended(entries, heads[3], heads[5]) == []
    assert ended(entries[:4], heads[3], heads[5]) == []
    assert ended([], Head(0, GENESIS), heads[0]) == []
    assert ended(entries[:5], heads[3], heads[4], heads[5]) == []


def test_entries_after_the_heads_are_a_fault_though_their_hashes_are_correct() -> None:
    entries = chain(6)
    heads = [Head(each.seq, each.hash) for each in entries]
    said = "{} after the head that was noted (entry {}): this home did not write them"
    assert ended(entries, heads[3]) == [said.format("2 entries come", 4)]
    assert ended(entries, heads[2], heads[4]) == [said.format("1 entry comes", 5)]
    assert ended(entries, Head(0, GENESIS)) == [said.format("6 entries come", 0)]
    assert ended(entries[:5], heads[3], heads[5]) == [said.format("1 entry comes", 4)], "less than was announced"
    assert ended(entries, heads[4], Head(6, "f" * 64)) == [said.format("1 entry comes", 5)], "not what was announced"
    assert [fault.seq for fault in check(entries, ends=heads[3:4])] == [5]
    elsewhere = check(entries, ends=heads[4:5], beyond="or another machine did")
    assert [fault.reason.rpartition(": ")[2] for fault in elsewhere] == ["or another machine did"]


def test_the_stored_head_must_exist_and_the_announced_one_need_not() -> None:
    entries, others = chain(6), chain(6, "other")
    heads = [Head(each.seq, each.hash) for each in entries]
    assert ended(entries[:3], heads[3], heads[5]) == [
        "the ledger ends at entry 3, and its head was noted at 4: its end is cut off"
    ]
    assert ended(others[:4], heads[3]) == ["entry 4 is not the one that was noted as the head: it was rewritten"]
    assert len(ended(others, heads[3])) == 2, "it was rewritten, and goes on"


STRANGE: tuple[Any, ...] = (
    None,
    "text",
    "1700000000.0",
    b"bytes",
    float("nan"),
    float("inf"),
    -1,
    0,
    True,
    2.0,
    2**70,
    Decimal(1),
    datetime(2025, 1, 1),  # noqa: DTZ001
    [],
    {},
    {1: object()},
    "\ud800",
    "",
)


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("number", [0, 2, 4])
def test_a_value_of_the_wrong_type_is_a_fault_and_raises_nothing(name: str, number: int) -> None:
    whole = chain(5)

    def check_with(value: Any) -> None:
        entries, changed = list(whole), {name: value}
        entries[number] = replace(entries[number], **changed)
        found = list(check(entries, [head(whole)]))
        assert found
        assert all(type(fault.seq) is int and fault.reason for fault in found)

    for value in STRANGE:
        check_with(value)


def test_a_body_nested_without_end_is_a_fault() -> None:
    entries = chain(2)
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    entries[1] = replace(entries[1], body=deep)
    assert len(reasons(entries, head(entries))) == 1
    while deep:
        deep = deep.pop()


# Random manipulations


def _edit(entries: list[LedgerEntry], pick: random.Random) -> None:
    number, name = pick.randrange(len(entries)), pick.choice(FIELDS)
    old, choices = getattr(entries[number], name), list[Any]()
    if isinstance(old, str):
        at = pick.randrange(len(old))
        choices += [old[:at] + old[at + 1 :], old[:at] + chr(pick.randrange(32, 1000)) + old[at + 1 :], old + " "]
        choices += [old.upper(), old[::-1], getattr(pick.choice(entries), name)]
    elif isinstance(old, int):
        choices += [old + 1, old - 1, old + 2**40, -old, float(old)]
    else:
        choices += [old + 1e-6, old - 1, -old, int(old), str(old), float("nan")]
    changed: dict[str, Any] = {name: pick.choice(choices)}
    entries[number] = replace(entries[number], **changed)


def _edit_and_seal(entries: list[LedgerEntry], pick: random.Random) -> None:
    number = pick.randrange(len(entries))
    body = canonical({"id": "mine", "quantity": pick.random()})
    old = entries[number]
    entries[number] = seal(old.seq, old.at, old.kind, old.key, body, old.prev)


def _edit_and_seal_all(entries: list[LedgerEntry], pick: random.Random) -> None:
    _edit_and_seal(entries, pick)
    entries[:] = sealed_again(entries)


def _remove(entries: list[LedgerEntry], pick: random.Random) -> None:
    first = pick.randrange(len(entries))
    del entries[first : first + pick.choice([1, 1, 2, 5])]


def _remove_and_seal_all(entries: list[LedgerEntry], pick: random.Random) -> None:
    _remove(entries, pick)
    entries[:] = sealed_again(entries)


def _reorder(entries: list[LedgerEntry], pick: random.Random) -> None:
    one, other = pick.sample(range(len(entries)), 2)
    entries[one], entries[other] = entries[other], entries[one]
    if pick.random() < 0.3:
        entries[:] = [replace(each, seq=seq) for seq, each in enumerate(entries, 1)]


def _duplicate(entries: list[LedgerEntry], pick: random.Random) -> None:
    entries.insert(pick.randrange(len(entries) + 1), pick.choice(entries))


def _insert(entries: list[LedgerEntry], pick: random.Random) -> None:
    at = pick.randrange(len(entries))
    before = entries[at - 1].hash if at else GENESIS
    entries.insert(at, seal(at + 1, 1.0, "order", "mine", "{}", before))
    if pick.random() < 0.5:
        entries[:] = sealed_again(entries)


def _truncate(entries: list[LedgerEntry], pick: random.Random) -> None:
    del entries[pick.randrange(len(entries)) :]


ATTACKS: tuple[Callable[[list[LedgerEntry], random.Random], None], ...] = (
    _edit,
    _edit_and_seal,
    _edit_and_seal_all,
    _remove,
    _remove_and_seal_all,
    _reorder,
    _duplicate,
    _insert,
    _truncate,
)


def test_every_random_manipulation_is_found() -> None:
    pick = random.Random(20251)
    whole = {count: chain(count) for count in (2, 3, 7, 20)}
    tried = dict.fromkeys(ATTACKS, 0)
    for number in range(ROUNDS):
        entries = whole[pick.choice(list(whole))]
        attack = ATTACKS[number % len(ATTACKS)]
        attacked = list(entries)
        attack(attacked, pick)
        if list(map(repr, attacked)) == list(map(repr, entries)):
            continue  # the edit wrote the same value
        tried[attack] += 1
        assert reasons(attacked, head(entries)), f"{attack.__name__} in round {number}"
    assert all(count > ROUNDS / len(ATTACKS) / 2 for count in tried.values())


# Evidence


def test_a_bars_hash_covers_all_that_the_bar_is() -> None:
    row = (100.0, 102.0, 98.0, 5.0)
    others = [
        (101.0, 102.0, 98.0, 5.0),
        (100.0, 103.0, 98.0, 5.0),
        (100.0, 102.0, 97.0, 5.0),
        (100.0, 102.0, 98.0, 6.0),
    ]
    bars = minutes([row, row])
    one = bar_hash(bars, 0)
    assert one == bar_hash(minutes([row]), 0)
    hashes = {bar_hash(minutes([each]), 0) for each in others}
    hashes |= {bar_hash(bars, 1), bar_hash(minutes([row], "ETH/USD"), 0), one}
    assert len(hashes) == 7
