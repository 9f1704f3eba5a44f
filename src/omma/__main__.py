"""``python -m omma`` is the command ``omma``."""

from omma.cli import main

main()
