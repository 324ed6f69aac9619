"""Each requirement of the five contracts with the test that shows it: a file per contract, in the order of its page."""
