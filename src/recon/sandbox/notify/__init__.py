"""What the sandbox tells by itself, when, and how often."""
