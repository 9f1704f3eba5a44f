"""Input read once: frames, arrays, labels, single rows and batches."""
