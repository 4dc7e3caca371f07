"""True value in, randomized bytes out: the only place that holds true values.

May import `cluster`, `config`, `estimators` and `protocol`. Begin with `producer.py`; to audit privacy read
`randomization`, then `budget`.

producer, config, errors   what an application sees
opening         the ways to open one: from a file, on the console, in a test
responders      checked values to randomized reports, by mechanism
randomization   the random source, permanent responses, the randomizers themselves
budget          which reports a client may still send, and what it has spent
pipeline        from the call to the store to the sender: queue, packing, transactions
storage         the SQLite file with all that must survive the process
transport       to Kafka or an edge: connections, sending
metrics         counters and their names
concurrency     threads, signals and forks
"""
