"""Execute the parts of a run in other processes or on a Dask cluster."""
