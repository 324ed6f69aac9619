"""The outage matrix: what users see while a store fails, and that nothing acknowledged is lost."""
