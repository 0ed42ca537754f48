"""What all operations share: the described interface, rows, signatures, exact bytes, transport."""
