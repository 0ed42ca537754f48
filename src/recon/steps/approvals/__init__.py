"""What people do beside a night: look, decide, answer, sign."""
