"""Instructions: planning, approval, eligibility, sending, doubts; and access to the gateway."""
