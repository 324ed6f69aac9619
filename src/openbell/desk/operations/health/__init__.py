"""What an operator watches: the state of each part of a desk, since when a part fails, and the figures to watch.

One value (`report.Health`) that `openbell health`, `openbell doctor`, the live view, /readyz, /health and /metrics show.
"""
