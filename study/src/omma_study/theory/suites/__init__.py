"""A module for each suite of simulations, which checks one statement of the paper."""
