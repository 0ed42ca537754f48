"""recon: settles and reconciles a merchant's payments, and proves that nothing fell between."""

__version__ = "0.1.0"
