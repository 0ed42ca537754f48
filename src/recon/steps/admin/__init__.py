"""Administration: doctors, housekeeping, verification, evidence for auditors."""
