"""Sends webhooks, and receives them at `/webhooks/ID`."""
