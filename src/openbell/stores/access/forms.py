"""Consent forms that were submitted."""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert, select

from openbell.stores.access.tables import forms


def use(connection: Connection, nonce: str, expires_at: float, now: float) -> bool:
    """Mark a form as submitted. Returns True for exactly one caller."""
    connection.execute(delete(forms).where(forms.c.expires_at <= now))
    if connection.execute(select(forms.c.nonce).where(forms.c.nonce == nonce)).first():
        return False
    connection.execute(insert(forms), {"nonce": nonce, "expires_at": expires_at})
    return True
