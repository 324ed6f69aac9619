"""The instruments and exchanges that sentences can name: one value each."""
