"""Tests of a desk that runs for long: nothing it holds grows, nothing it was given is lost."""
