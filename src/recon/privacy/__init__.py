"""What of persons, cards and accounts may be kept or shown, and files that only their owner reads.

Everything else of recon may stand on it; it imports nothing of recon.
"""
