"""What a night read and came to, as sealed Parquet files."""
