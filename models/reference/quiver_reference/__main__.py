"""Runs an edge: prints what happens as lines of JSON, and sends each line of its input to the group, signed.

    python3 -m quiver_reference --data DIR --deployment FILE --token FILE --group NAME --kgc ADDRESS --leader ADDRESS
"""

import argparse
import asyncio
import json
import sys
import time

from .node import Node
from .ristretto import Refused


def shown(event):
    return json.dumps({name: value.decode("utf-8", "replace") if isinstance(value, bytes) else value
                       for name, value in event.items()})


async def run(options):
    node = Node(options.data, options.deployment, options.group, options.token, options.kgc, options.leader)
    node.start()
    waiting = asyncio.Queue()
    loop = asyncio.get_running_loop()
    loop.add_reader(sys.stdin, lambda: waiting.put_nowait(sys.stdin.readline()))
    try:
        while True:
            for event in node.edge.events:
                print(shown(event), flush=True)
            node.edge.events.clear()
            try:
                text = await asyncio.wait_for(waiting.get(), 0.1)
            except TimeoutError:
                continue
            if not text:
                loop.remove_reader(sys.stdin)
                continue
            try:
                node.edge.say(time.time(), options.channel, text.rstrip("\n").encode())
                node.flush()
            except Refused as reason:
                print(f"error: not sent: {reason}; wait for the event `epoch`", file=sys.stderr)
    finally:
        await node.stop()


def main():
    parser = argparse.ArgumentParser(prog="quiver_reference", description="An edge, for reading and interoperation.")
    parser.add_argument("--data", required=True, help="its directory; the state in it is not encrypted")
    parser.add_argument("--deployment", required=True, help="deployment.toml")
    parser.add_argument("--token", required=True, help="the token's file")
    parser.add_argument("--group", required=True)
    parser.add_argument("--channel", default="chat")
    parser.add_argument("--kgc", action="append", default=[], help="/ip4/HOST/tcp/PORT; may be repeated")
    parser.add_argument("--leader", action="append", default=[], help="the same of a leader")
    try:
        asyncio.run(run(parser.parse_args()))
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
