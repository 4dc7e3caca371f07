"""The HTTP server that takes uploads of devices and writes them to the topic `uploads`.

May import `estimators` and `producers`, of which only `wire`, `transport`, `budget` and `metrics.metric`.
Begin with `server`; `web.requests` says what is answered to which request.
"""
