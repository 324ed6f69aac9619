"""Who may use the gateway: users, OAuth clients, authorization codes, tokens, and failed sign-ins.

They belong to the desk, not to a market or a scenario, so they have a database of their own: `access.sqlite` in the home, or
the PostgreSQL schema `openbell_access`. Passphrases, codes, tokens and client secrets are stored as hashes.
"""
