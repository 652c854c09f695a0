# SPDX-License-Identifier: BSD-3-Clause
"""Asks DuckDB the questions of this folder about a data set, and prints a line of JSON for each.

ask_duckdb.py DIR QUERY.sql...    (pip install duckdb)
"""

import json
import pathlib
import sys
import time

import duckdb

folder, *queries = sys.argv[1:]
database = duckdb.connect()
for table in ["durations", "requests", "causes", "traces"]:
    files = f"{folder}/{table}/*/*/*.parquet".replace("'", "''")
    database.sql(f"create view {table} as select * from read_parquet('{files}', hive_partitioning = true)")
for query in queries:
    began = time.monotonic()
    rows = database.sql(pathlib.Path(query).read_text()).fetchall()
    print(json.dumps({"query": query, "seconds": time.monotonic() - began, "rows": rows}), flush=True)
