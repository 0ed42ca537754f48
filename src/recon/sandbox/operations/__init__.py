"""Each operation of the gateway, played."""
