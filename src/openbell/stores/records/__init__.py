"""The records: orders, fills, alerts, decisions, accounts and the ledger, on SQLite or PostgreSQL.

`tables` defines the tables and `migrations` upgrades a database to them. `records` runs functions as transactions, on
`sqlite` or `postgres`. Writes go through `journal`, which adds each row to the ledger; the ledger's head is stored in a file
(`ledger_head_file`) before a write returns. The other modules are queries, by subject.
"""
