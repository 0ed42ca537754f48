"""The signer: the only process with the gateway's sign keys; it signs only what was approved."""
