"""Files that hold each window once, whatever is killed: Parquet or CSV, by collection and day,
in a folder or a bucket.

May import `errors`, `periods`, `tables` and `sources`. Begin with `day_files`.
"""
