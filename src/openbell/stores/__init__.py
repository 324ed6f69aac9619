"""What lasts: bars in Parquet with a SQLite buffer in front. Safe for many processes and for kill −9 at any moment."""
