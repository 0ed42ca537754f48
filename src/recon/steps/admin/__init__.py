"""Looking after it: doctors, housekeeping, verification."""
