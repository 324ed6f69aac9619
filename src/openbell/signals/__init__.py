"""Signals on closed bars: the snapshot, the contract's crossings, and alerts that watch them. Pure."""
