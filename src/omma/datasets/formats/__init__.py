"""Formats that data come in: one file each, and what they share."""
