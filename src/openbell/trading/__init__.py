"""Orders, fills, books, risk rules, alerts and the ledger: pure code, with ports to brokers."""
