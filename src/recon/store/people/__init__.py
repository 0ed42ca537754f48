"""Stored decisions of people: approvals, agreements, closed months, answers to breaks."""
