"""Questions to the gateway at its pace, and answers for every key."""
