"""What the paper proves, and simulations that check it; ``omma.theory`` is its public face."""
