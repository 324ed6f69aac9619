"""The journal of decisions: what an agent decided, and why."""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from openbell.desk.settings import Settings
from openbell.desk.settings.principals import Quota
from openbell.market.instruments import parse
from openbell.stores.records import decisions as queries
from openbell.stores.records.journal import Journal
from openbell.stores.records.records import Records
from openbell.trading.request import ReasoningTooLong

LONGEST_REASONING = 16_384


class DecisionService:
    """Decisions of principals."""

    def __init__(
        self,
        records: Records,
        settle: Callable[[], Awaitable[None]],
        settings: Settings,
        others: tuple[Records, ...] = (),
    ) -> None:
        """New decisions are written to `records`, after `settle` has brought them up to date; `others` are listed too."""
        self._records = records
        self._most, self._most_mb = (Quota.of(settings, name) for name in ("quota_decisions", "quota_decisions_mb"))
        self._kept: dict[str, queries.Kept] = {}
        """By principal, as of its last decision."""
        records.on_replaced.append(self._kept.clear)
        self._settle = settle
        self._listed = (records, *others)

    async def save(
        self,
        principal: str,
        symbol: str,
        action: str,
        confidence: float,
        opportunity_score: float | None,
        reasoning: str,
        tool_calls: list[Any] | None,
    ) -> str:
        """Record a decision; returns its id. Raises `InvalidSymbol`, `ReasoningTooLong`, `QuotaExceeded`."""
        if len(reasoning) > LONGEST_REASONING:
            raise ReasoningTooLong(
                f"the reasoning has {len(reasoning)} characters, the most is {LONGEST_REASONING}",
                length=len(reasoning),
                maximum=LONGEST_REASONING,
            )
        row = {
            "id": f"dec_{secrets.token_hex(10)}",
            "principal": principal,
            "symbol": parse(symbol).symbol,
            "action": action,
            "confidence": float(confidence),
            "opportunity_score": None if opportunity_score is None else float(opportunity_score),
            "reasoning": reasoning,
            "tool_calls": tool_calls,
        }

        size = len(reasoning) + (0 if tool_calls is None else len(json.dumps(tool_calls)))

        def work(journal: Journal) -> None:
            kept = queries.kept(journal.view, principal, self._kept.get(principal, queries.Kept()))
            self._kept[principal] = kept
            self._most.check(kept.count)
            self._most_mb.check_bytes(kept.size, size)
            journal.put("decision", {**row, "created_at": journal.at}, new=True)

        await self._settle()
        await self._records.write(work)
        return str(row["id"])

    async def recent(
        self, principal: str, limit: int, offset: int, symbol: str | None, action: str | None
    ) -> tuple[list[Mapping[str, Any]], int]:
        """Returns a page of a principal's decisions, newest first, and how many there are in all."""
        wanted = None if symbol is None else parse(symbol).symbol
        if len(self._listed) == 1:
            return await self._records.read(queries.recent, principal, limit, offset, wanted, action)
        # The page may need the first `offset + limit` rows of each: they are merged here.
        pages = [
            await records.read(queries.recent, principal, offset + limit, 0, wanted, action) for records in self._listed
        ]
        rows = sorted((row for page, _ in pages for row in page), key=lambda row: row["created_at"], reverse=True)
        return rows[offset : offset + limit], sum(total for _, total in pages)
