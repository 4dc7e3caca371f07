"""True value in, randomized bytes out. Owns the wire format: what may leave is the producer's promise.

May import `estimators`. Begin with `producer.py`; to audit privacy read `randomization`, then `budget`.

producer, config, errors   what an application sees
responders      checked values to randomized reports, by mechanism
randomization   the secret, the random source, permanent responses, the randomizers themselves
budget          which reports a client may still send, and what it has spent
pipeline        from the call to the store to the sender: queue, packing, transactions
storage         the SQLite file with all that must survive the process
transport       Kafka: addresses, TLS, connections, sending
metrics         counters and their names
concurrency     threads, signals and forks
wire            the bytes of one Kafka record
"""
