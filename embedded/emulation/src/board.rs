//! An emulated board: an emulator, its console and its wire.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

use quiver_service_testing::Process;
use quiver_service_testing::eventually;

use crate::console::Console;
use crate::wire::{EmulatedWire, End};

/// An emulated board.
#[derive(Debug)]
pub struct EmulatedBoard {
    /// The emulator.
    pub emulator: Process,
    /// The board's console.
    pub console: Console,
    /// The line to its gateway, which dials [`End::Gateway`].
    pub wire: EmulatedWire,
}

/// The ports on 127.0.0.1 that an emulator is to dial.
#[derive(Clone, Copy, Debug)]
pub struct Ports {
    /// Port of the line to the gateway.
    pub link: u16,
    /// Port of the console.
    pub console: u16,
}

impl EmulatedBoard {
    /// Starts an emulator, which dials the ports it is given. Its own and the board's output goes to `log`
    /// with the endings `out`, `err` and `console`.
    ///
    /// # Panics
    /// If the emulator cannot be started or does not connect.
    #[must_use]
    pub fn start(log: &Path, command: impl FnOnce(Ports) -> Command) -> Self {
        Self::start_on(EmulatedWire::new(1), log, command)
    }

    /// Starts a board, as [`start`](Self::start) does, on an existing wire: the board takes the place of the
    /// one before.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    #[must_use]
    pub fn start_on(wire: EmulatedWire, log: &Path, command: impl FnOnce(Ports) -> Command) -> Self {
        let console = listener();
        let ports = Ports { link: wire.port(End::Board), console: port(&console) };
        let emulator = Process::start(command(ports), log);
        Self::dialled(emulator, &console, wire, log)
    }

    /// A board of an emulator that dials its console here.
    pub(crate) fn dialled(emulator: Process, console: &TcpListener, wire: EmulatedWire, log: &Path) -> Self {
        let line = accept(console, &emulator);
        Self { console: Console::new(line, &log.with_extension("console")), emulator, wire }
    }
}

/// Waits for what an emulator is to dial.
pub(crate) fn listener() -> TcpListener {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port on loopback");
    listener.set_nonblocking(true).expect("a socket option");
    listener
}

/// The port to dial.
pub(crate) fn port(listener: &TcpListener) -> u16 {
    listener.local_addr().expect("bound").port()
}

/// The emulator's connection.
///
/// # Panics
/// If the emulator does not connect.
pub(crate) fn accept(listener: &TcpListener, emulator: &Process) -> TcpStream {
    let line = eventually("the emulator dials", || match listener.accept() {
        Ok((line, _)) => Some(line),
        Err(_) => {
            assert!(emulator.is_running(), "the emulator does not dial: {}", emulator.story());
            None
        }
    });
    line.set_nonblocking(false).expect("a socket option");
    line
}

/// Time source of QEMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// The host's clock: as fast as the host can.
    Host,
    /// An instruction takes 16 nanoseconds, as on a board whose processor does one in each cycle: on a slow
    /// host the board's time is slow as well, and its watchdog does not take work for a hang.
    Board,
    /// An instruction takes a nanosecond: what `quiver-mps2` counts is true, and the same on every host.
    Instructions,
}

/// QEMU with an image of `quiver-mps2`. `options` are those of the image: `seed=7`, `cut=100`, `rng=stuck`.
#[must_use]
pub fn qemu(image: &Path, time: Time, options: &[&str], ports: Ports) -> Command {
    let mut qemu = Command::new("qemu-system-arm");
    qemu.args(["-machine", "mps2-an386", "-cpu", "cortex-m4", "-display", "none", "-monitor", "none"]);
    for (name, port) in [("link", ports.link), ("console", ports.console)] {
        let device = format!("socket,id={name},host=127.0.0.1,port={port},nodelay=on");
        qemu.args(["-chardev", &device, "-serial", &format!("chardev:{name}")]);
    }
    let options: String = options.iter().map(|option| format!(",arg={option}")).collect();
    qemu.args(["-semihosting-config", &format!("enable=on,target=native,arg=quiver{options}")]);
    match time {
        Time::Host => &mut qemu,
        Time::Board => qemu.args(["-icount", "shift=4"]),
        Time::Instructions => qemu.args(["-icount", "shift=0"]),
    };
    qemu.arg("-kernel").arg(image);
    qemu
}
