"""Files of a night: arrived, ingested, set aside, read again."""
