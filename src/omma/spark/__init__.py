"""omma on Spark: the same decisions, for streams larger than one machine.

``stream`` decides a stream of micro-batches and learns from their labels, exactly once each;
``load_state`` reads what it has learned; ``predict`` and ``count`` do the same for whole frames.
``stream_per_key`` keeps a state for each key, and ``load_states`` reads them.
"""

try:
    import pyarrow  # noqa: F401
    import pyspark.sql  # noqa: F401
except ImportError as error:
    raise ImportError(
        "omma.spark needs PySpark and Arrow, which are not installed: "
        'pip install "omma-learn[spark]"'
    ) from error

from omma.spark.per_key import load_states, stream_per_key
from omma.spark.streaming import count, load_state, predict, stream

__all__ = ["count", "load_state", "load_states", "predict", "stream", "stream_per_key"]
