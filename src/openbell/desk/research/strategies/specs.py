"""The specs that a principal may use: the canonical ones and those that it has submitted."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from hashlib import sha256
from typing import Any

from openbell.desk.settings.principals import Quota
from openbell.market.nearest import did_you_mean
from openbell.stores.records import strategies as queries
from openbell.stores.records.journal import Journal
from openbell.stores.records.records import Records
from openbell.stores.records.strategies import EVERYONE
from openbell.strategies.errors import DuplicateName, ProblemKind, SpecProblem, SpecRefused, UnknownSpec, by_part
from openbell.strategies.implementations import fingerprint_of
from openbell.strategies.indicator_names import snake
from openbell.strategies.library import canonical
from openbell.strategies.reading import read_spec
from openbell.strategies.spec import Spec

log = logging.getLogger(__name__)

_RESERVED = ("SPEC_", "IMPL_")


class SpecOrigin(StrEnum):
    """Who wrote a spec; the value is the contract's."""

    CANONICAL = "CANONICAL"
    SUBMITTED = "LLM_GENERATED"


@dataclass(frozen=True, slots=True)
class KnownSpec:
    """A spec with an id."""

    id: str
    """The name of a canonical spec."""
    principal: str
    """Its owner; empty for canonical specs."""
    origin: SpecOrigin
    spec: Spec
    fingerprint: str
    submitted_at: float | None = None
    """Bars before it are no evidence: its author may have seen them. None for canonical specs."""


@cache
def canonical_specs() -> tuple[KnownSpec, ...]:
    """All canonical specs, by name."""
    return tuple(
        KnownSpec(name, EVERYONE, SpecOrigin.CANONICAL, spec, fingerprint_of(spec))
        for name, spec in canonical().items()
    )


def canonical_named(name: str) -> Spec | None:
    """Returns the canonical spec of a name in any spelling that `SpecService.find` accepts; None if there is none."""
    known = canonical()
    return next((known[each] for each in spellings(name) if each in known), None)


def spellings(name: str) -> tuple[str, str]:
    """Returns the names that a text may mean: as it is written, and as `read_spec` writes it (`buys low`: BUYS_LOW)."""
    return name.strip().upper(), snake(name).upper()


class SpecService:
    """Specs of principals."""

    def __init__(self, records: Records, quota: Quota) -> None:
        """`quota` is for the specs of a principal: each is tried on every watched series."""
        self._quota = quota
        self._records = records
        self._read: dict[str, KnownSpec] = {}
        """Submitted specs by id; a spec is written once."""
        records.on_replaced.append(self._read.clear)

    async def all(self, principal: str) -> list[KnownSpec]:
        """Returns the canonical specs and the principal's own."""
        return [*canonical_specs(), *await self.own(principal)]

    async def own(self, principal: str) -> list[KnownSpec]:
        """Returns the specs that a principal has submitted, oldest first."""
        rows = await self._records.read(queries.specs_of, principal)
        found = []
        for row in rows:
            try:
                found.append(self._known(row))
            except SpecRefused as refused:  # it was submitted to another version of this program
                log.warning("%s is left out: %s", row["name"], refused.message)
        return found

    async def find(self, principal: str, text: str) -> KnownSpec:
        """Returns the spec of an id or a name. Raises `UnknownSpec`."""
        known = await self.all(principal)
        wanted = text.strip()
        by_name = {each.spec.name: each for each in known} | {each.id: each for each in known}
        for key in (wanted, *spellings(wanted)):
            if key in by_name:
                return by_name[key]
        names = [each.spec.name for each in known]
        advice = did_you_mean(spellings(wanted)[1], names) or "; get_top_specs and openbell strategies list have them"
        raise UnknownSpec(f"no spec {wanted[:80]!r}{advice}", spec_id=wanted[:80])

    async def submit(self, principal: str, raw: Mapping[str, Any], reasoning: str) -> KnownSpec:
        """Record a spec. Raises `SpecRefused` with every problem, `DuplicateName` and `QuotaExceeded`."""
        try:
            spec = read_spec(raw)
        except SpecRefused as refused:
            raise by_part(refused) from None
        row = {
            "id": f"spec_{sha256(json.dumps([principal, spec.name]).encode()).hexdigest()[:16]}",
            "principal": principal,
            "name": spec.name,
            "content": dict(raw),
            "reasoning": reasoning,
        }
        if spec.name.startswith(_RESERVED):
            problem = SpecProblem(ProblemKind.NAME, "name", "must not begin with SPEC_ or IMPL_, as ids do")
            raise by_part(SpecRefused(spec.name, [problem]))
        if spec.name in canonical():
            raise DuplicateName(
                f"the name {spec.name} is taken by a canonical spec: choose another name", spec_id=spec.name
            )

        def work(journal: Journal) -> Mapping[str, Any]:
            own = queries.specs_of(journal.view, principal)
            _refuse_duplicate(own, row)
            self._quota.check(len(own))
            made = {**row, "created_at": journal.at}
            journal.put("spec", made, new=True)
            return made

        return self._known(await self._records.write(work))

    def _known(self, row: Mapping[str, Any]) -> KnownSpec:
        found = self._read.get(row["id"])
        if found is None:
            spec = read_spec(row["content"])
            at = float(row["created_at"])
            found = KnownSpec(row["id"], row["principal"], SpecOrigin.SUBMITTED, spec, fingerprint_of(spec), at)
            self._read[found.id] = found
        return found


def _refuse_duplicate(own: Iterable[Mapping[str, Any]], row: Mapping[str, Any]) -> None:
    if any(each["name"] == row["name"] for each in own):
        raise DuplicateName(
            f"the name {row['name']} is taken by a spec that you have submitted: choose another name", spec_id=row["id"]
        )
