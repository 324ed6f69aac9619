"""Closed bars: read through the store to the feed, collected, and what is known about them; the watchlist."""
