"""A self-hosted API of chart images that speaks the vendor's v2 and v3: its clients work by changing the host."""
