"""The log on standard error: one line for each event, times in UTC, equal lines counted, no secrets."""
