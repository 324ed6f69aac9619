"""What an instrument costs and signals now, also as the quotes API (Arche)."""
