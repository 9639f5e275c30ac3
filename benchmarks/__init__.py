"""Side-by-side runs against peers. Each module has a `main()` that prints its bars; `python -m benchmarks [NAME …]`."""
