#!/usr/bin/env python3
"""How many cycles per instruction a Cortex-M4 takes for what QEMU executed, at least and at most.

Reads QEMU's log from standard input: `-d in_asm,exec,nochain -D FILE`, where FILE may be a named pipe. Prints the number of
instructions and both figures. `src/estimate.rs` has the timings (ARM DDI 0439, section 3.3) and what came out for each kind of benchmark;
repeat a benchmark so often that starting the image does not count.
"""

import re
import sys
from collections import Counter

INSTRUCTION = re.compile(r"^0x([0-9a-f]{8}):\s+([0-9a-f]{4}(?: [0-9a-f]{4})?)\s+(\S+)\s*(.*)$")
EXECUTED = re.compile(r"^Trace \d+: 0x[0-9a-f]+ \[[0-9a-f]+/([0-9a-f]+)/")
CONDITION = "(eq|ne|cs|hs|cc|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)?"
LOAD = re.compile(f"^ldr(b|h|sb|sh)?{CONDITION}$")
STORE = re.compile(f"^str(b|h)?{CONDITION}$")
SEVERAL = re.compile(r"^v?(ldm|stm|push|pop)")
# By which a branch that is taken is longer than one that is not.
REFILL = (1, 3)


def registers(operands):
    """How many registers a list like `{r4, r6-r8}` has."""
    listed = re.search(r"\{(.*)\}", operands)
    count = 0
    for part in listed.group(1).split(",") if listed else ["r0"]:
        numbers = [int(number) for number in re.findall(r"[rsd](\d+)", part)]
        count += numbers[1] - numbers[0] + 1 if len(numbers) == 2 else 1
    return count


def timing(block):
    """The cycles of a block at least and at most, its last branch not taken."""
    least = most = 0
    follows = False
    for name, operands in block:
        name = name.split(".")[0]
        if LOAD.match(name):
            cycles, follows = (1 if follows else 2, 2), True
        elif STORE.match(name):
            cycles, follows = (1, 2), True
        else:
            follows = False
            if name.startswith(("ldrd", "strd")):
                cycles = (3, 3)
            elif SEVERAL.match(name):
                cycles = (1 + registers(operands),) * 2
            elif name.startswith(("vldr", "vstr")):
                cycles = (2, 2)
            elif re.match(r"^[us]div", name):
                cycles = (2, 12)
            else:
                cycles = (1, 1)
        least, most = least + cycles[0], most + cycles[1]
    return least, most


def read(log):
    """Blocks with the address behind them, how often each was executed, how often it ended by a branch taken."""
    blocks, ends, executed, taken = {}, {}, Counter(), Counter()
    last = start = None
    for line in log:
        if trace := EXECUTED.match(line):
            address = int(trace.group(1), 16)
            if last in ends and address != ends[last]:
                taken[last] += 1
            executed[address] += 1
            last = address
        elif line.startswith("IN:"):
            start = None
        elif instruction := INSTRUCTION.match(line):
            address, code, name, operands = instruction.groups()
            address = int(address, 16)
            if start is None:
                start = address
                blocks[start] = []
            blocks[start].append((name, operands))
            ends[start] = address + len(code.replace(" ", "")) // 2
    return blocks, executed, taken


def main():
    blocks, executed, taken = read(sys.stdin)
    instructions = least = most = 0
    for address, block in blocks.items():
        count, branches = executed[address], taken[address]
        low, high = timing(block)
        instructions += count * len(block)
        least += count * low + branches * REFILL[0]
        most += count * high + branches * REFILL[1]
    if not instructions:
        sys.exit("nothing was executed: is this a log of -d in_asm,exec,nochain?")
    print(f"{instructions} instructions, {least / instructions:.3f} to {most / instructions:.3f} cycles each")


if __name__ == "__main__":
    main()
