"""Money of a night: approved, gated, sent, doubted, resolved."""
