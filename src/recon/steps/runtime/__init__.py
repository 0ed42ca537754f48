"""What all steps share: environment, identity, the previous night, how a night ends."""
