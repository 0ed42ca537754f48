"""What a night read and came to, as sealed Parquet files under a manifest, and what checks them."""
