"""Instruments, timeframes, bars, sessions, the clock and the errors. Pure: no files, no network."""
