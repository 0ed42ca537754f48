"""Notifications from the gateway: received over HTTP, verified and stored as evidence."""
