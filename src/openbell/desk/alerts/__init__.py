"""Alerts and crossings on closed bars, the inbox that they reach, and webhooks that carry them."""
