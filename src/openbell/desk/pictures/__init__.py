"""Indicators, charts and chart images."""
