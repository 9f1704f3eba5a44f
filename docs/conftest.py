"""The scripts of this folder are run by hand or by mkdocs; only its pages are tests."""

collect_ignore_glob = ["*.py"]
