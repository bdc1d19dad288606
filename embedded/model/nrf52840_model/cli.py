"""The command line."""

import argparse
import signal
import sys
from pathlib import Path

from .control import Control
from .faults import ModelFault, PowerLost
from .fleet import Fleet
from .flash import Storage
from .host import Air, Host, Line
from .image import ImageError, load
from .lockstep import Lockstep
from .machine import Machine
from .peripherals.rng import MODES

USAGE_ERROR, FAULT, POWER_LOST = 64, 70, 75

# Between the arguments of one chip and those of the next.
AND = "+"

DESCRIPTION = "Runs an unmodified nRF52840 firmware image (ELF) on a model of the chip; several, with a + between them, on one clock."
EPILOG = """\
lines
  --link is UARTE0 and --console UARTE1. listen:127.0.0.1:0 takes a free port and prints it:
      link 127.0.0.1:40311
  tcp:127.0.0.1:5000 connects out, and again whenever the connection breaks.

standard output
  One line per thing that happens: `link HOST:PORT`, `console HOST:PORT`, `radio PORT`, `reset REASON`, `hardfault …`,
  `power lost …`, `fault …`, and the answers to orders if they come on standard input.

orders (--control)
  press 1, release 1, leds, supply low, supply good, power-cycle, reset, freeze, flash stuck,
  power-loss-at-write N, rng silent, rng constant, rng ok, radio, peers P,P, loss 0.2, unplug link,
  plug link, speed 10, status, wear, quit; with --lockstep also until MICROSECONDS, say link HEX

exit status
   0  quit, or --seconds have passed
  64  wrong usage, or not an image
  70  the firmware did what the hardware forbids (say, a third write to a word of flash)
  75  the supply failed in the flash operation that was asked for; the file holds what was left of it

examples
  a board whose gateway and console connect to it, with its flash kept:
      python -m nrf52840_model edge.elf --link listen:127.0.0.1:0 --console listen:127.0.0.1:0 --flash drone.flash
  two radios that hear each other:
      python -m nrf52840_model edge.elf --radio 7001 --peers 7002
      python -m nrf52840_model edge.elf --radio 7002 --peers 7001 --seed 2
  the same in one process and on one clock, so that no frame is lost because the host is busy:
      python -m nrf52840_model edge.elf + edge.elf --seed 2
  an hour as fast as it goes:
      python -m nrf52840_model edge.elf --virtual-time --seconds 3600
"""


def arguments() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(
        prog="nrf52840_model", description=DESCRIPTION, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("image", type=Path, metavar="IMAGE", help="the firmware, as linked (ELF)")
    parser.add_argument("--link", metavar="WHERE", help="UARTE0: tcp:HOST:PORT or listen:HOST:PORT")
    parser.add_argument("--console", metavar="WHERE", help="UARTE1: tcp:HOST:PORT or listen:HOST:PORT")
    parser.add_argument("--flash", type=Path, metavar="FILE", help="keep flash and UICR in FILE (made if missing)")
    parser.add_argument("--radio", type=int, metavar="PORT", help="UDP port of this radio on loopback; 0 takes a free one")
    parser.add_argument("--peers", default="", metavar="PORT,…", help="UDP ports of the radios that hear this one")
    parser.add_argument("--radio-loss", type=float, default=0.0, metavar="FRACTION", help="of frames lost on reception")
    parser.add_argument("--rng", choices=MODES, default="ok", help="how the random number generator behaves")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of everything random: RNG, FICR, RAM, loss")
    parser.add_argument(
        "--power-loss-at-write", type=int, metavar="N", help="the supply fails in the N-th word write or page erase"
    )
    pace = parser.add_mutually_exclusive_group()
    pace.add_argument("--speed", type=float, default=1.0, metavar="X", help="idle time passes X times as fast (default 1)")
    pace.add_argument("--virtual-time", action="store_true", help="idle time is skipped: as fast as possible")
    pace.add_argument("--lockstep", action="store_true", help="time passes as orders let it, and lines are orders: see lockstep.py")
    parser.add_argument("--seconds", type=float, metavar="S", help="stop after S seconds of virtual time")
    parser.add_argument("--rtt", type=Path, metavar="FILE", help="append the image's RTT output (defmt frames) to FILE")
    parser.add_argument("--control", metavar="WHERE", help="take orders: stdin or tcp:HOST:PORT; the end of either ends the model")
    return parser


def each(given: list[str]) -> list[argparse.Namespace]:
    """The options of each chip."""
    parser, chips = arguments(), [[]]
    for word in given:
        if word == AND:
            chips.append([])
        else:
            chips[-1].append(word)
    first, *others = [parser.parse_args(chip) for chip in chips]
    if any(chip.virtual_time or chip.speed != 1.0 or chip.seconds is not None for chip in others):
        parser.error("--speed, --virtual-time and --seconds hold for all chips, and are said with the first")
    if others and any(chip.radio is not None for chip in (first, *others)):
        parser.error("chips of one process hear each other, and nobody else: no --radio")
    by_order = first.control and not (first.link or first.console or first.radio is not None or first.seconds is not None)
    if any(chip.lockstep for chip in (first, *others)) and (others or not by_order):
        parser.error("--lockstep is for one chip, whose --control has its lines and its time as well")
    return [first, *others]


def build(options: argparse.Namespace, host: Host) -> tuple[Machine, Control | None]:
    """The machine with everything attached that the options ask for."""
    image = load(options.image)
    storage = Storage(options.flash, options.seed)
    storage.supply.fail_at = options.power_loss_at_write
    machine = Machine(image, storage=storage, seed=options.seed, host=host)
    machine.rng.fail(options.rng)
    machine.radio.loss = options.radio_loss
    for name, where, uarte in (
        ("link", options.link, machine.uartes[0]),
        ("console", options.console, machine.uartes[1]),
    ):
        if where:
            line = Line(host, name, where, uarte.receive, uarte.room)
            uarte.transmit = line.send
            machine.lines[name] = line
    air = None
    if options.radio is not None:
        air = Air(host, options.radio, machine.radio.receive)
        air.peers = [int(port) for port in options.peers.split(",") if port]
        machine.radio.transmit = air.send
    if options.rtt:
        machine.attach_rtt(image, options.rtt)
    if not options.control:
        return machine, None
    if options.lockstep:
        return machine, Lockstep(machine, options.control)
    control = Control(machine, host, air, options.control)
    control.watch()
    return machine, control


def main(given: list[str] | None = None) -> int:
    """Runs the model; returns the exit status."""
    options = each(sys.argv[1:] if given is None else given)
    host = Host(speed=0 if options[0].virtual_time or options[0].lockstep else options[0].speed)
    try:
        chips = [build(chip, host) for chip in options]
    except (ImageError, ModelFault, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return USAGE_ERROR
    machines = [machine for machine, _control in chips]
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: machines[0].quit())
    try:
        control = chips[0][1]
        if isinstance(control, Lockstep):
            control.run()
        else:
            Fleet(machines).run(options[0].seconds)
    except PowerLost as lost:
        print(lost, flush=True)
        return POWER_LOST
    except ModelFault as fault:
        print(f"fault {fault}", flush=True)
        return FAULT
    finally:
        for machine in machines:
            machine.keep_up()
    return 0
