"""Who evaluates tables and sums: this process, or a Dask cluster."""
