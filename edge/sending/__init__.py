"""From uploads to records of the topic `uploads`. May import `metrics` and `lasting_tasks`.

Begin with `upload_writer`, which answers for every upload; `lanes` are its queues.
"""
