# SPDX-License-Identifier: BSD-3-Clause
"""Asks Spark the questions of this folder about a data set, and prints a line of JSON for each.

ask_spark.py DIR QUERY.sql...    (pip install pyspark; or spark-submit ask_spark.py ..., on a cluster)
"""

import json
import pathlib
import sys
import time

from pyspark.sql import SparkSession

folder, *queries = sys.argv[1:]
spark = SparkSession.builder.appName("fleet").getOrCreate()
for table in ["durations", "requests", "causes", "traces"]:
    spark.read.parquet(f"{folder}/{table}").createOrReplaceTempView(table)
for query in queries:
    began = time.monotonic()
    rows = [list(row) for row in spark.sql(pathlib.Path(query).read_text()).collect()]
    print(json.dumps({"query": query, "seconds": time.monotonic() - began, "rows": rows}), flush=True)
spark.stop()
