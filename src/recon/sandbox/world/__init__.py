"""One sample world over the ledger of effects: what all files say, and what must be found."""
