"""Adding, listing and removing a principal's webhooks, and the deliveries that were given up."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeVar

from openbell.market.errors import InvalidParameter, NoSuchWebhook, Refused
from openbell.market.instruments import parse
from openbell.net.addresses import parse_target
from openbell.stores.records import webhooks as queries
from openbell.stores.records.journal import Journal
from openbell.stores.records.records import RecordAccess, Records
from openbell.stores.records.snapshot import View
from openbell.stores.records.webhooks import INBOUND, OUTBOUND, Delivery, Webhook

T = TypeVar("T")
EVENTS = ("alert", "fill")
MOST_WEBHOOKS = 50
"""How many webhooks a principal may have."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.-]{0,59}")


@dataclass(frozen=True, slots=True)
class Listed:
    """A webhook, and how many of its deliveries wait or are dead."""

    webhook: Webhook
    waiting: int
    dead: int


class WebhookService:
    """The webhooks of principals."""

    def __init__(self, records: Records, trusted: Iterable[str] = ()) -> None:
        """`trusted` are origins for which plain HTTP and private addresses are allowed (`net/addresses.py`)."""
        self._records = records
        self._trusted = frozenset(trusted)

    @property
    def active(self) -> bool:
        """Whether this desk sends and receives: only at the present, and only if it may write."""
        return self._records.access is RecordAccess.PRESENT and not self._records.read_only

    async def add(
        self, principal: str, url: str, events: Iterable[str] = (), symbols: Iterable[str] = ()
    ) -> tuple[Webhook, str]:
        """Send events of some kinds (none: all) about some symbols (none: all) to a URL, from now on.

        Returns the webhook and its signing secret, which is not returned again. Raises `OutboundRefused` if the URL is
        not allowed, `InvalidParameter` or `InvalidSymbol` for the others.
        """
        target = parse_target(url, self._trusted)
        wanted = frozenset(events) or frozenset(EVENTS)
        if unknown := sorted(wanted - set(EVENTS)):
            raise InvalidParameter(f"no event {unknown[0][:40]!r}; use {', '.join(EVENTS)}")
        names = frozenset(parse(each).symbol for each in symbols)
        key, secret = f"wh_{secrets.token_hex(6)}", f"whsec_{secrets.token_urlsafe(32)}"
        chosen = tuple(each for each in EVENTS if each in wanted)

        def work(journal: Journal) -> Webhook:
            self._require_room(journal.view, principal)
            made = Webhook(
                key, principal, OUTBOUND, "", url, chosen, names, secret, created_at=journal.at, since=journal.seq
            )
            shown = {"origin": target.origin, "events": list(chosen), "symbols": sorted(names)}
            queries.add(journal, made, shown)
            return made

        return await self._write(work), secret

    async def add_inbound(self, principal: str, name: str) -> tuple[Webhook, str]:
        """Accept requests at `/webhooks/ID`; returns the webhook and the secret that each request must bring.

        Raises `InvalidParameter` for a name that is not allowed.
        """
        if not _NAME.fullmatch(name):
            raise InvalidParameter(
                "a name has 1 to 60 letters, digits, spaces, dots, dashes and underscores, and starts with a letter or digit"
            )
        key, secret = f"in_{secrets.token_hex(16)}", secrets.token_urlsafe(24)
        hashed = hash_of(secret)

        def work(journal: Journal) -> Webhook:
            self._require_room(journal.view, principal)
            made = Webhook(key, principal, INBOUND, name, "", (), frozenset(), hashed, journal.at, journal.seq)
            queries.add(journal, made, {"name": name})
            return made

        return await self._write(work), secret

    async def list(self, principal: str) -> Sequence[Listed]:
        """Returns a principal's webhooks, oldest first."""

        def work(view: View) -> list[Listed]:
            numbers = queries.counts(view)
            found = queries.of_principal(view, principal)
            return [Listed(each, numbers.get((each.id, False), 0), numbers.get((each.id, True), 0)) for each in found]

        return await self._records.read(work)

    async def remove(self, principal: str, webhook_id: str) -> None:
        """Remove a webhook with everything that waits for it. Raises `NoSuchWebhook`."""
        if not await self._write(lambda journal: queries.remove(journal, principal, webhook_id)):
            raise NoSuchWebhook("there is no webhook with this id; openbell webhook list shows all")

    async def dead(self, principal: str) -> Sequence[Delivery]:
        """Returns a principal's deliveries that were given up, oldest first."""
        return await self._records.read(queries.dead_of, principal)

    async def retry(self, principal: str, key: str) -> int:
        """Send a dead delivery again, or all of a webhook; returns how many. Raises `NoSuchWebhook` if there is none."""

        def work(journal: Journal) -> int:
            chosen = [each.id for each in queries.dead_of(journal.view, principal) if key in {each.id, each.webhook_id}]
            queries.revive(journal, chosen, time.time())
            return len(chosen)

        if count := await self._write(work):
            return count
        raise NoSuchWebhook("there is no dead delivery with this id; openbell webhook dead shows all")

    async def _write(self, work: Callable[[Journal], T]) -> T:
        if self._records.access is not RecordAccess.PRESENT:
            raise Refused("webhooks belong to the present: unset OPENBELL_AS_OF and do not use a replayed feed")
        return await self._records.write(work)

    @staticmethod
    def _require_room(view: View, principal: str) -> None:
        if len(queries.of_principal(view, principal)) >= MOST_WEBHOOKS:
            raise Refused(f"there are {MOST_WEBHOOKS} webhooks already: remove one first")


def hash_of(secret: str) -> str:
    """Returns the form in which the secret of an inbound webhook is stored."""
    return sha256(secret.encode(errors="replace")).hexdigest()
