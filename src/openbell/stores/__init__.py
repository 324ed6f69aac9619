"""Storage: bars in Parquet files or InfluxDB behind a SQLite buffer, records, users and tokens in SQLite or PostgreSQL.

Any number of processes may share it, and any of them may be killed at any moment.
"""
