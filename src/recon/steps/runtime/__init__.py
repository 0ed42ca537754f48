"""What every step stands on: environment, identity, the night before, how a night ends."""
