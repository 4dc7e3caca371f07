"""The HTTP server that takes uploads of devices and writes them to the topic `uploads`.

May import `cluster`, `config`, `estimators` and `protocol`. Begin with `server`; `web.requests`
says what is answered to which request.
"""
