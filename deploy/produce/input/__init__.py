"""Read lines from pipes, files and growing files into batches, with the position to resume from.

May import `timing`. Begin with `batches`; `source` reads bytes, `json_lines` and `csv_records` read records
from them.
"""
