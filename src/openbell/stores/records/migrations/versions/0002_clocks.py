"""Cursors of the inbox, checkpoints of accounts, troubles of the engine."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the tables; the last notification that a principal has seen becomes its cursor."""
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "checkpoints",
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("seq", number, autoincrement=False, nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("account", "seq", name=op.f("pk_checkpoints")),
    )
    op.create_table(
        "troubles",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("since", sa.Float(precision=53), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_troubles")),
    )
    cursors = op.create_table(
        "cursors",
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("seen", number, nullable=False),
        sa.Column("pushed", number, nullable=False),
        sa.PrimaryKeyConstraint("principal", name=op.f("pk_cursors")),
    )
    op.create_index("ix_ledger_at_seq", "ledger", ["at", "seq"], unique=False)
    op.create_index("ix_fills_account_at", "fills", ["account", "at"], unique=False)
    inbox = sa.table("inbox", sa.column("principal"), sa.column("cursor"), sa.column("seen"))
    pushes = sa.table("pushes", sa.column("principal"), sa.column("cursor"))
    seen = sa.select(inbox.c.principal, sa.func.max(inbox.c.cursor)).where(inbox.c.seen).group_by(inbox.c.principal)
    # Every queued push has a higher cursor than the pushes that were sent.
    waiting = sa.select(pushes.c.principal, sa.func.min(pushes.c.cursor)).group_by(pushes.c.principal)
    newest = sa.select(inbox.c.principal, sa.func.max(inbox.c.cursor)).group_by(inbox.c.principal)
    connection = op.get_bind()
    taken = {principal: int(cursor) for principal, cursor in connection.execute(seen)}
    queued = {principal: int(cursor) - 1 for principal, cursor in connection.execute(waiting)}
    for principal, cursor in connection.execute(newest).all():
        row = {"principal": principal, "seen": taken.get(principal, 0), "pushed": queued.get(principal, int(cursor))}
        connection.execute(sa.insert(cursors), row)
    op.drop_column("inbox", "seen")
