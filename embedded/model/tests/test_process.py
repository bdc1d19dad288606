"""The model as a process: options, lines, orders, exit statuses."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from test_flash import PLACE, writing
from thumb import Program

from nrf52840_model.flash import Storage

ROOT = Path(__file__).resolve().parent.parent
UARTE0 = 0x4000_2000


def echo() -> Program:
    """Sends every byte back that UARTE0 receives."""
    p = Program().label("main").store(8, UARTE0 + 0x500).store(0x1000_0000, UARTE0 + 0x524)
    for offset, value in ((0x534, 0x2000_0000), (0x538, 1), (0x544, 0x2000_0000), (0x548, 1)):
        p.store(value, UARTE0 + offset)
    p.label("loop").store(0, UARTE0 + 0x110).store(0, UARTE0 + 0x120).store(1, UARTE0)
    p.label("rx").read(2, UARTE0 + 0x110).raw(0x2A00).branch("rx", 0).store(1, UARTE0 + 0x008)
    return p.label("tx").read(2, UARTE0 + 0x120).raw(0x2A00).branch("tx", 0).branch("loop")


def run(tmp_path, program: Program, *options: str, **kwargs) -> subprocess.Popen:
    image = tmp_path / "image.elf"
    image.write_bytes(program.elf())
    command = [sys.executable, "-m", "nrf52840_model", str(image), *options]
    return subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kwargs
    )


def lines_until(process: subprocess.Popen, start: str) -> list[str]:
    seen = []
    for line in process.stdout:
        seen.append(line.strip())
        if line.startswith(start):
            return seen
    raise AssertionError(f"no {start!r} in {seen}: {process.stderr.read()}")


def test_help_teaches():
    answer = subprocess.run(
        [sys.executable, "-m", "nrf52840_model", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for word in ("examples", "exit status", "--link", "listen:127.0.0.1:0", "power-loss-at-write"):
        assert word in answer.stdout


def test_a_listening_line_prints_its_port_and_carries_bytes_both_ways(tmp_path):
    with run(tmp_path, echo(), "--link", "listen:127.0.0.1:0", "--control", "stdin") as process:
        port = int(lines_until(process, "link")[-1].rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=20) as line:
            line.sendall(b"abc")
            assert b"".join(line.recv(1) for _ in range(3)) == b"abc"
        with socket.create_connection(("127.0.0.1", port), timeout=20) as line:
            line.sendall(b"d")
            assert line.recv(1) == b"d", "a new connection takes the line over"
        process.stdin.close()
        assert process.wait(20) == 0


def test_a_line_that_connects_out_finds_its_listener(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(20)
        where = f"tcp:127.0.0.1:{listener.getsockname()[1]}"
        with run(tmp_path, echo(), "--link", where, "--control", "stdin") as process:
            line, _ = listener.accept()
            line.settimeout(20)
            line.sendall(b"x")
            assert line.recv(1) == b"x"
            line.close()
            line, _ = listener.accept()
            process.stdin.close()
            assert process.wait(20) == 0
            line.close()


def test_orders_are_answered_and_wrong_ones_too(tmp_path):
    with run(tmp_path, echo(), "--control", "stdin", "--radio", "0") as process:
        answers = []
        for order in ("leds", "press 1", "press 9", "rng silent", "flash stuck", "flash melted", "peers 1,2", "loss x", "dance", "status", "power-cycle"):
            process.stdin.write(order + "\n")
            process.stdin.flush()
            while True:
                line = process.stdout.readline().strip()
                if line.split()[0] in ("ok", "error"):
                    break
            answers.append(line)
        assert answers[0].startswith("ok leds ")
        assert [answer.split()[0] for answer in answers[1:]] == [
            "ok", "error", "ok", "ok", "error", "ok", "error", "error", "ok", "ok",
        ]  # fmt: skip
        assert lines_until(process, "reset power-on")
        process.stdin.write("quit\n")
        process.stdin.flush()
        assert process.wait(20) == 0


def test_in_lockstep_time_passes_and_bytes_come_only_as_ordered(tmp_path):
    def order(process: subprocess.Popen, text: str) -> list[str]:
        process.stdin.write(text + "\n")
        process.stdin.flush()
        return lines_until(process, "ok")[-1].split()[1:]

    def life() -> list[list[str]]:
        with run(tmp_path, echo(), "--lockstep", "--control", "stdin") as process:
            story = [order(process, "until 1000"), order(process, "say link 616263"), order(process, "say console 00")]
            story += [order(process, f"until {end}") for end in (1_005, 1_000_000, 1_000_000, 1_000_000)]
            story += [order(process, f"until {end}") for end in (1_000_000, 1_000_000)]
            process.stdin.close()
            assert process.wait(20) == 0
        return story

    first = life()
    times = [int(answer[1]) for answer in first if answer and answer[0] == "until"]
    assert [answer[2:] for answer in first[3:]] == [
        ["link", "-", "console", "-"],
        ["link", "61", "console", "-"],
        ["link", "62", "console", "-"],
        ["link", "63", "console", "-"],
        ["link", "-", "console", "-"],
        ["link", "-", "console", "-"],
    ]
    assert times[0] in range(1_000, 1_010) and times[1] in range(1_005, 1_015)
    assert times[2] < 2_000 and times[-1] in range(1_000_000, 1_000_010)
    assert life() == first


@pytest.mark.parametrize("wrong", [[], ["--control", "stdin", "--link", "listen:127.0.0.1:0"], ["--control", "stdin", "--speed", "2"]])
def test_lockstep_has_no_other_lines_and_no_other_pace(tmp_path, wrong):
    process = run(tmp_path, echo(), "--lockstep", *wrong)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 2 and "--lockstep" in err


def test_orders_can_come_on_a_socket_whose_end_ends_the_model(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(20)
        where = f"tcp:127.0.0.1:{listener.getsockname()[1]}"
        with run(tmp_path, echo(), "--control", where, "--radio", "0") as process:
            control, _ = listener.accept()
            control.settimeout(20)
            control.sendall(b"radio\n")
            assert control.recv(100).startswith(b"ok radio ")
            control.close()
            assert process.wait(20) == 0


def test_a_power_loss_ends_with_its_status_and_the_file_is_left_torn(tmp_path):
    flash = tmp_path / "flash"
    process = run(tmp_path, writing(0, 0, 0), "--flash", str(flash), "--power-loss-at-write", "2", "--virtual-time")
    out, _ = process.communicate(timeout=20)
    assert process.returncode == 75
    assert "power lost at flash operation 2" in out
    cells = Storage(flash, 1).flash
    assert cells.word(PLACE) == 0
    assert cells.word(PLACE + 8) == 0xFFFF_FFFF


def test_a_fault_of_the_firmware_has_a_status_of_its_own(tmp_path):
    program = Program().label("main").store(0, PLACE).branch("main")
    process = run(tmp_path, program, "--virtual-time")
    out, _ = process.communicate(timeout=20)
    assert process.returncode == 70
    assert "fault store to flash" in out


def test_a_killed_model_has_everything_in_its_file(tmp_path):
    flash = tmp_path / "flash"
    program = writing(0x1234_5678)
    process = run(tmp_path, program, "--flash", str(flash), "--control", "stdin")
    process.stdin.write("status\n")
    process.stdin.flush()
    lines_until(process, "ok status")
    deadline = 200
    while Storage(flash, 1).flash.word(PLACE) != 0x1234_5678 and deadline:
        process.stdin.write("status\n")
        process.stdin.flush()
        lines_until(process, "ok status")
        deadline -= 1
    process.kill()
    process.communicate(timeout=20)
    assert Storage(flash, 1).flash.word(PLACE) == 0x1234_5678


@pytest.mark.parametrize("wrong", [["--link", "serial:1"], ["--seconds", "x"]])
def test_wrong_usage_is_told(tmp_path, wrong):
    process = run(tmp_path, echo(), *wrong)
    _, err = process.communicate(timeout=20)
    assert process.returncode in (2, 64)
    assert "error" in err


def test_a_file_that_is_no_image_is_told(tmp_path):
    (tmp_path / "image.elf").write_bytes(b"not an ELF file")
    answer = subprocess.run(
        [sys.executable, "-m", "nrf52840_model", str(tmp_path / "image.elf")], cwd=ROOT, capture_output=True, text=True
    )
    assert answer.returncode == 64
    assert "error" in answer.stderr
