"""Workbooks read back: what people changed, what is signed, what is compared."""
