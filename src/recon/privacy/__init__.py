"""What of persons, cards and accounts may be kept or shown; files, sockets and servers of ours.

Everything else of recon may stand on it; it imports nothing of recon.
"""
