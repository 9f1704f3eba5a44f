"""What omma promises about speed, measured: ``python -m benchmarks.speed``."""
