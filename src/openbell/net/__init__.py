"""Requests to other machines: one HTTP client with bounds, the addresses and URLs that it may use, and rates."""
