"""Brokers that stand outside this machine, behind the port of `trading.broker`."""
