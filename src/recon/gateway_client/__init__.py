"""The HTTP client of the payment gateway. A leaf: imports nothing else of recon."""
