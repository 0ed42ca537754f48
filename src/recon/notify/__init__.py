"""Notifications: mail and webhooks for people, a log file for machines."""
