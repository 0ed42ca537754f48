"""Domain terms, money, dates and errors as values: the lowest layer of recon."""
