"""The instruments: each module defines those of one kind as INSTRUMENTS."""
