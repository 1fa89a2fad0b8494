"""Engines that run the queries of `banditrank.logs._count_queries`: DuckDB, and Spark."""
