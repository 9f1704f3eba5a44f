"""Rows as users give them, read once: frames, indexes, arrays, single rows, batches."""
