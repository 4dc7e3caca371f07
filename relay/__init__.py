"""From uploads of devices to packs: what arrived together is shuffled together and packed once.

May import `cluster`, `estimators` and `protocol`. Begin with `fold`, which states what the packs of a log
are; `recovery` says where a restarted relay continues, and `service` is the process.

fold        one partition of `uploads`, record by record, to batches
recovery    the position of a relay, and where it begins to read again
windows     reports of open windows that are held back, and upload ids seen
acceptance  which groups of uploads count
intake      the terms of collections, by window
columns     the groups of a frame as arrays
sealing     from released reports to packs
control     markers and settings, the records of relays
keys        what relays keep secret
service     the process that reads `uploads` and writes `reports`; all else is pure
"""
