"""Spoiled and hostile files: whatever is in them, nothing but the library's own errors comes out.

``targets.py`` lists what is read; adding a target is one function. ``edits.py`` spoils files,
``verdict.py`` tells the library's errors from others, ``child.py`` runs targets in a process of
its own, so that a crash is a failed test. By hand: ``python -m tests.fuzz --minutes 60``.
"""
