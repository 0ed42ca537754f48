"""What people said: approvals, agreements, answers."""
