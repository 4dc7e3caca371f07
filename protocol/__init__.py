"""The bytes and names that programs exchange: what must not change without a new version.

May import `estimators`. Begin with `wire`, the bytes of one Kafka record.

wire, uploads   packs in Kafka; what a device sends to an edge, and an edge to relays
publication     what workers publish about collections
topic_names     the topics of a deployment
secrets         the file of a secret, and what is computed with it in every language
metric          names, units and texts of metrics
notation        which number or text a value means, however it is written
times           times as people and programs write them
words           how programs write a number of things
"""
