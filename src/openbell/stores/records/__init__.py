"""The records: orders, fills, alerts, decisions, accounts and the ledger, on SQLite or PostgreSQL.

`tables` says what there is and `migrations` brings a database there. `records` runs a function of a connection as one
transaction, `sqlite` and `postgres` being the two ways to do that; what is written goes through `journal`, which seals it
in the ledger, and is anchored by `head` before anybody hears of it. The other modules are the questions, by subject.
"""
