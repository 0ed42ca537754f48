"""The night: its order, asking the gateway, its report, who is told."""
