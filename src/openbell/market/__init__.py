"""What a market is: instruments, timeframes, bars, sessions and the clock. Pure: no files, no network."""
