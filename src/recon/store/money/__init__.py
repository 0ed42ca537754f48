"""Money movements in the database: instructions, batches, journal, endorsements, cases."""
