"""What the gateway tells by itself: received over HTTP, verified, kept as evidence."""
