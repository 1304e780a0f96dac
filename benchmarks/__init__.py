"""Benchmarks: ratios with peers, medians of interleaved rounds in one process."""
