"""Orders, accounts and decisions: the pure code of `trading/` combined with records, bars and a broker."""
