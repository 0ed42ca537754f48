"""The one process that holds the gateway's sign keys; it signs what was agreed and no more."""
