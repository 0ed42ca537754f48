"""Our instructions and keys to the gateway client's rows, and its replies to our records."""
