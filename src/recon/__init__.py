"""recon: settles and reconciles a merchant's payments, and proves that nothing fell between."""

__version__ = "0.2.0"
