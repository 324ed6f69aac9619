"""Tests of the chart API that the gateway serves in the vendor's form."""
