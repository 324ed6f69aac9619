"""Trading services: the pure code of `trading/` combined with records, bars and a broker.

`orders` places and cancels orders through `gate`. `engine` holds the lease and runs without a caller: `matching` (paper
fills), `reconcile` (reports of a broker), `alert_engine` (alerts). `portfolio`, `inbox` and `decisions` answer queries.
"""
