"""How money is sent: approvals, the gate, the sender, and doubts about what was sent."""
