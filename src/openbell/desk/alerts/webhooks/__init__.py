"""Webhooks of principals: which there are, what is sent to them, and what arrives through them."""
