# SPDX-License-Identifier: BSD-3-Clause
"""Runs DuckDB on tables of Parquet, for their contents or the SQL on standard input; prints the rows as JSON.

tables.py DIR [SQL-IS-ON-STDIN]
"""

import glob
import json
import sys

import duckdb

folder = sys.argv[1]
database = duckdb.connect()
for table in ["spans", "waits", "arcs", "points", "cpus", "threads", "durations", "requests", "causes", "traces"]:
    files = f"{folder}/{table}/**/*.parquet"
    # A trace without requests has no such table.
    if not glob.glob(files, recursive=True):
        continue
    database.sql(f"create view {table} as select * from read_parquet('{files}', hive_partitioning = true)")
print(json.dumps(database.sql(sys.stdin.read()).fetchall(), default=str))
