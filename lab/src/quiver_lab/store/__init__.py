"""Results on disk: every results file whole, and its rows as Parquet, for questions in SQL."""
