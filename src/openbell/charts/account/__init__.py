"""The trades, orders and alerts of an account on the chart of their symbol."""
