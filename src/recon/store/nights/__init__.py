"""What a night read, asked, found and came to."""
