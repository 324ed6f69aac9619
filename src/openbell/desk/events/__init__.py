"""What happens on a desk and runs beside its calls: events, supervised work, and leases."""
