"""What an edge is compared with: a plain aiohttp handler that awaits aiokafka for each upload.

python -m bench.devices.plain_handler SERVERS TOPIC PARTITIONS PORT LOOP FINGERPRINT

It checks uploads as an edge does, and answers as one.
"""

import asyncio
import sys
import time

import uvloop
from aiohttp import web
from aiokafka import AIOKafkaProducer

from edge.intake.acceptance import GroupTerms, check_upload
from producers.transport.uploads.upload import UploadError
from producers.wire import KRR_NUMBER, partition_of

TERMS = GroupTerms(KRR_NUMBER, 100, 1, 1, 3600, 7200, True)


async def serve(servers: str, topic: str, partitions: int, port: int, fingerprint: int) -> None:
    """Serve until the process is ended."""
    producer = AIOKafkaProducer(bootstrap_servers=servers, acks="all")
    await producer.start()

    async def take(request: web.Request) -> web.Response:
        body = await request.read()
        try:
            checked = check_upload(body, {fingerprint: TERMS}, time.time())
        except UploadError:
            return web.Response(status=400)
        if not checked.taken:
            return web.Response(status=400)
        partition = partition_of(checked.upload_id, partitions)
        await producer.send_and_wait(topic, checked.taken, partition=partition)
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
