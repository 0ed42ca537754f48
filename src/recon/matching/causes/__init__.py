"""Reasons of breaks as sentences, causes that several breaks share, and proposed journals."""
