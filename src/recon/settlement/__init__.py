"""Instructions: planning, states, the sender, resolution of doubt. No I/O of its own."""
