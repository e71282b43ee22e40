"""Benchmarks: ratios measured in one run on one machine. `python -m benchmarks` runs them."""
