"""A talk in a group: joins it, sends each line of standard input, and prints what others send.

    QUIVER_PASSPHRASE=… python talk.py DATA_DIR LEADER --deployment deployment.toml --token edge-1.token    # first start
    QUIVER_PASSPHRASE=… python talk.py DATA_DIR LEADER                                                      # later

At the end of the input it leaves the group.
"""

import argparse
import asyncio
import os
import sys

import quiver

MINUTE = 60.0


def show(event: quiver.Event) -> None:
    """Prints an event. What others send must not drive the terminal."""
    if isinstance(event, quiver.Event.Enrolled):
        print(f"enrolled as {event.name}", flush=True)
    elif isinstance(event, quiver.Event.Epoch):
        print(f"epoch: term {event.term}, counter {event.counter}", flush=True)
    elif isinstance(event, quiver.Event.Message):
        text = event.data.decode(errors="replace")
        text = "".join(c if c.isprintable() else "." for c in text)
        sender = event.sender or f"slot {event.slot}, as it claims"
        print(f"[{event.channel}] {sender}: {text}", flush=True)
    elif isinstance(event, (quiver.Event.Refused, quiver.Event.Evicted, quiver.Event.Left)):
        print(event.reason if isinstance(event, quiver.Event.Refused) else type(event).__name__.lower(), flush=True)


def take_events(edge: quiver.Edge) -> None:
    """Prints all events that are queued."""
    while (event := edge.next_event(timeout=0)) is not None:
        show(event)


async def talk(edge: quiver.Edge) -> None:
    """Sends the lines of standard input until it ends. Calls that wait are for threads; events come by the loop."""
    loop = asyncio.get_running_loop()
    await asyncio.to_thread(edge.join, MINUTE)
    key = await asyncio.to_thread(edge.export_key, "talk", MINUTE)
    print(f"joined, with a key of {len(key.key)} bytes for this application", flush=True)
    loop.add_reader(edge.fileno(), take_events, edge)
    while line := await asyncio.to_thread(sys.stdin.readline):
        try:
            await asyncio.to_thread(edge.send, "chat", line.rstrip("\n").encode(), timeout=MINUTE)
        except quiver.Error as error:
            print(f"not sent: {error}", file=sys.stderr)
    loop.remove_reader(edge.fileno())
    await asyncio.to_thread(edge.leave, MINUTE)
    take_events(edge)


def main() -> int:
    parser = argparse.ArgumentParser(description="A talk in a group of Quiver's")
    parser.add_argument("data_dir")
    parser.add_argument("leader", help="multiaddress of the group's leader")
    parser.add_argument("--deployment", help="the deployment file, at the first start")
    parser.add_argument("--token", help="file of the token, at the first start")
    parser.add_argument("--kgc", action="append", default=[], help="multiaddress of a KGC")
    options = parser.parse_args()
    passphrase = os.environ.get("QUIVER_PASSPHRASE", "").encode()
    try:
        with quiver.Edge(
            options.data_dir,
            passphrase,
            leaders=[options.leader],
            deployment=options.deployment,
            token_file=options.token,
            kgcs=options.kgc,
        ) as edge:
            asyncio.run(talk(edge))
    except quiver.Error as error:
        print(f"talk: {error}", file=sys.stderr)
        return error.code
    return 0


if __name__ == "__main__":
    sys.exit(main())
