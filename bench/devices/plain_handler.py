"""What an edge is compared with: a plain aiohttp handler that awaits aiokafka for each upload.

python -m bench.devices.plain_handler SERVERS TOPIC PARTITIONS PORT LOOP FINGERPRINT

It decodes each upload and knows its collection, checks no more, and answers as an edge.
"""

import asyncio
import sys

import uvloop
from aiohttp import web
from aiokafka import AIOKafkaProducer

from deniable.protocol.uploads.upload import UploadError, decode_upload
from deniable.protocol.wire import partition_of


async def serve(servers: str, topic: str, partitions: int, port: int, fingerprint: int) -> None:
    """Serve until the process is ended."""
    producer = AIOKafkaProducer(bootstrap_servers=servers, acks="all")
    await producer.start()

    async def take(request: web.Request) -> web.Response:
        body = await request.read()
        try:
            upload = decode_upload(body)
        except UploadError:
            return web.Response(status=400)
        if any(group.fingerprint != fingerprint for group in upload.groups):
            return web.Response(status=409)
        partition = partition_of(upload.upload_id, partitions)
        await producer.send_and_wait(topic, body, partition=partition)
        return web.Response(status=204)

    app = web.Application()
    app.router.add_post("/v1/reports", take)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()


def main() -> None:
    """Run the handler on asyncio's loop or on uvloop."""
    servers, topic, partitions, port, loop, fingerprint = sys.argv[1:]
    factory = uvloop.new_event_loop if loop == "uvloop" else None
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(serve(servers, topic, int(partitions), int(port), int(fingerprint)))


if __name__ == "__main__":
    main()
