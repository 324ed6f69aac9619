"""Orders, fills, the book, risk, alerts and the ledger: state machines and sums, pure but for their ports."""
