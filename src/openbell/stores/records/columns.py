"""The metadata of all tables, and the types of their columns."""

from __future__ import annotations

from sqlalchemy import BigInteger, Float, MetaData
from sqlalchemy.dialects.sqlite import INTEGER

NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
"""How indexes and constraints are named."""
metadata = MetaData(naming_convention=NAMES)
Number = BigInteger().with_variant(INTEGER, "sqlite")
Time = Float(53)
