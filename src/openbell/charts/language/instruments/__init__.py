"""The instruments and exchanges that sentences can name: one value each, in one module of `kinds` for each kind."""
