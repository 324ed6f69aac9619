"""Tests of webhooks, in both directions."""
