"""Signals on closed bars: the indicators' snapshot, the contract's crossings, and alerts on crossings. Pure."""
