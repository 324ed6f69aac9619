"""Chart configs: what a client asks of a chart image, as a contract's or as the vendor's JSON, read and validated."""
