"""One file per indicator. A new one is a new file; nothing else changes."""
