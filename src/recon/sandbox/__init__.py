"""The gateway, played: stateful, signed, faulty on demand."""
