"""The ledger as the outbox: makes deliveries of the fired alerts and fills that were recorded after a cursor.

The cursor advances in the transaction that stores the deliveries. So each entry becomes one delivery per webhook, even if
the process is killed, and nothing is sent for a transaction that was rolled back. Deliveries are signed: a signature is
`t=SECONDS,v1=HEX`, where HEX is the HMAC-SHA256 of `SECONDS.BODY` with the webhook's secret.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any

from openbell.market.clock import iso
from openbell.stores.port import Lease
from openbell.stores.records import progress
from openbell.stores.records import webhooks as queries
from openbell.stores.records.journal import Journal
from openbell.stores.records.records import Records
from openbell.stores.records.snapshot import View
from openbell.stores.records.webhooks import Delivery, Recorded, Webhook
from openbell.trading.accounts import PAPER

_CURSOR = "webhooks"
_NOTE_EVERY = 10_000
"""After so many entries without a delivery the cursor is stored, so that the next process does not read them again."""
SIGNATURE_HEADER = "Openbell-Signature"
SIGNATURE_SECONDS = 300
"""Seconds after which a receiver should refuse a signature."""


class Outbox:
    """Makes deliveries, for the process that holds the sender's lease."""

    def __init__(self, records: Records, data_source: str, *, live: bool, now: Callable[[], float]) -> None:
        """`live` is True if orders at a broker trade real money; `now` is the machine's time."""
        self._records = records
        self._data_source = data_source
        self._live = live
        self._now = now
        self._read = 0
        """The entry up to which this process has read."""
        records.on_replaced.append(self._forget)

    def _forget(self) -> None:
        """Read again from the stored cursor: another ledger was accepted."""
        self._read = 0

    async def collect(self, lease: Lease) -> None:
        """Make deliveries of everything that was recorded since the last call."""
        while await self._collect(lease):
            pass

    async def _collect(self, lease: Lease) -> bool:
        """Make deliveries of some entries; returns True if there may be more."""

        def look(view: View) -> tuple[int, list[Delivery], int, int]:
            stored, hooks = int(progress.progress(view, _CURSOR)), queries.outbound(view)
            # A webhook gets only what is recorded after it was added: earlier entries are skipped, not read.
            start = max(stored, self._read, min((each.since for each in hooks), default=0))
            found, through = queries.recorded_after(view, start)
            return stored, self._deliveries(view, found, hooks), start, through

        stored, new, start, through = await self._records.read(look)

        def store(journal: Journal) -> None:
            queries.queue(journal.view, new)
            progress.set_progress(journal.view, _CURSOR, through)

        if new or through - stored >= _NOTE_EVERY:
            await self._records.write(store, lease=lease)
        self._read = through
        return through > start

    def _deliveries(self, view: View, found: list[Recorded], hooks: Iterable[Webhook]) -> list[Delivery]:
        made: list[Delivery] = []
        brokers = queries.brokers(view) if any(each.kind == "fill" for each in found) else {}
        for each in found:
            row = json.loads(each.body)
            for hook in hooks:
                if _takes(hook, each, row):
                    data = dict(each.notification or {}) or self._fill(row, brokers)
                    made.append(self._delivery(hook, each, data))
        return made

    def _delivery(self, hook: Webhook, each: Recorded, data: Mapping[str, Any]) -> Delivery:
        key, now = f"dlv_{secrets.token_hex(12)}", self._now()
        event = {
            "id": key,
            "type": each.kind,
            "created_at": iso(each.at),
            "data_source": self._data_source,
            "data": data,
        }
        body = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
        return Delivery(key, hook.id, each.seq, each.kind, body, queued=now, due=now)

    def _fill(self, row: Mapping[str, Any], brokers: Mapping[str, str]) -> dict[str, Any]:
        """Returns what a webhook says of a fill. Amounts are decimal text, as the ledger has them."""
        at_broker = brokers.get(row["account"], PAPER) != PAPER
        return {
            "fill_id": row["id"],
            "order_id": row["order_id"],
            "symbol": row["symbol"],
            "side": row["side"],
            "quantity": row["quantity"],
            "price": row["price"],
            "fees": row["fee"],
            "filled_at": iso(row["at"] if row["bar"] is None else row["bar"]),
            "recorded_at": iso(row["at"]),
            "account": "live" if at_broker and self._live else "paper",
            "data_source": self._data_source,
        }


def _takes(hook: Webhook, each: Recorded, row: Mapping[str, Any]) -> bool:
    """Returns True if an entry is sent to a webhook."""
    return (
        each.seq > hook.since
        and each.kind in hook.events
        and row["principal"] == hook.principal
        and (not hook.symbols or row["symbol"] in hook.symbols)
    )


def sign(secret: str, at: int, body: bytes) -> str:
    """Returns the value of the signature header."""
    return f"t={at},v1={_digest(secret, str(at), body)}"


def verify(secret: str, header: str, body: bytes, now: float) -> bool:
    """Returns True if a body has this signature and was signed within the last five minutes."""
    parts = dict(part.split("=", 1) for part in header.split(",") if "=" in part)
    stamp, given = parts.get("t", ""), parts.get("v1", "")
    fresh = stamp.isascii() and stamp.isdigit() and len(stamp) < 20 and abs(now - int(stamp)) <= SIGNATURE_SECONDS
    return hmac.compare_digest(_digest(secret, stamp, body).encode(), given.encode()) and fresh


def _digest(secret: str, stamp: str, body: bytes) -> str:
    return hmac.new(secret.encode(), stamp.encode() + b"." + body, sha256).hexdigest()
