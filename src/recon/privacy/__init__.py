"""Masking of personal, card and account data, and safe files, sockets and servers.

All other packages of recon may use it; it imports no other package of recon.
"""
