"""Strategies at work: specs and their implementations in the records, the search for them, signals and consensus."""
