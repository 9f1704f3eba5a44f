"""Says where this module moved."""

raise ImportError(
    "omma.study moved to the package omma-study: pip install omma-study, then import omma_study"
)
