"""What the sandbox stands on: options, clock, book, population, requests."""
