"""The archive: inputs and results of nights as Parquet files, sealed by a manifest and verified."""
