"""Benchmarks: ratios with peers, medians over interleaved rounds; `python -m benchmarks --list` names them."""
