"""A plan runs over a sequence: rows go to the kernels, decisions and counts come back."""
