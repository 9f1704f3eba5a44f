"""A Spark of our own for tests: two cores, loopback only, nothing left running."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import omma

SETTINGS = {
    # Tests are over before a JVM has finished optimizing itself.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.adaptive.enabled": "false",
    "spark.python.authenticate.socketTimeout": "300s",  # of workers that start on a busy machine
    "spark.log.level": "OFF",
}


def missing():
    """Why there can be no Spark here, in a sentence; None where there can."""
    if find_spec("pyspark") is None:
        return 'PySpark is not installed: pip install "omma-learn[spark]"'
    java = shutil.which("java")
    if java is None:
        return "Spark needs Java 17, which is not here"
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = said.split('"')[1].split(".")[0] if '"' in said else "0"
    if not version.isdigit() or int(version) < 17:
        return f"Spark needs Java 17 or later, here is {said.splitlines()[0] if said else 'none'}"
    return None


def settle():
    """What must be said before a JVM starts."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # Workers find omma, and what tests have them do, where this process found it.
    here = [str(Path(__file__).parent), str(Path(omma.__file__).parents[1])]
    before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*here, *filter(None, before)]))


def begin(master="local[2,4]", folder=None, **more):
    """A session; ``folder`` gets what Spark would write beside the tests."""
    from pyspark.sql import SparkSession

    settle()
    builder = SparkSession.builder.master(master).appName("omma")
    for name, value in {**SETTINGS, **more}.items():
        builder = builder.config(name, value)
    if folder is not None:
        builder = builder.config("spark.sql.warehouse.dir", f"{folder}/warehouse")
        builder = builder.config("spark.local.dir", f"{folder}/local")
    return builder.getOrCreate()
