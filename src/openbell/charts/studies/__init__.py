"""The studies of chart configs: one value each, with the vendor's name and inputs and the indicators that draw it."""
