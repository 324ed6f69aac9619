"""Backups of a home: what belongs together, copied while the desk runs, and checked when it is restored."""
