"""Instructions: planned, judged, sent once, their doubts; and the gateway as an account has it."""
