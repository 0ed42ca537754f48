"""The approvals service: the only process that can verify and sign who approved what."""
