"""Who does the parts of a night beside this process: a Dask cluster."""
