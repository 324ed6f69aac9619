"""Trading as the desk does it: the pure machines of `trading/`, the records, the bars and a broker, put together.

`orders` places and cancels, through `gate`; `engine` holds the lease and does what must go on by itself: `matching` (paper
fills), `reconcile` (what a broker says), `alarms` (alerts). `portfolio`, `inbox` and `decisions` answer questions.
"""
