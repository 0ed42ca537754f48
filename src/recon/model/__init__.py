"""The words of the domain, money, days and errors, as values; nothing of recon stands below."""
