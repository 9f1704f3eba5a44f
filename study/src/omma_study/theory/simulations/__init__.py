"""A module for each statement of the paper that simulations check."""
