"""Where bars come from: one port (history and stream), one module per feed, found by name."""
