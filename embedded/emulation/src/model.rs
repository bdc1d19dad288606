//! The nRF52840 model (`embedded/model`): a board whose surroundings are controlled by commands, such as a
//! pressed button.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use quiver_service_testing::Process;
use quiver_service_testing::build::root;

use crate::board::{EmulatedBoard, Ports, accept, listener, port};
use crate::control::ControlPort;
use crate::wire::{EmulatedWire, End};

/// Exit status of a model that lost power in the flash operation at which it was told to.
pub const POWER_LOST: i32 = 75;

/// Setup of a model.
#[derive(Clone, Debug, Default)]
pub struct ModelSetup {
    /// File of the flash; without one its content ends with the model.
    pub flash: Option<PathBuf>,
    /// Seed of everything random: the generator's output, the chip's number, lost frames.
    pub seed: u64,
    /// More options of the model's command line.
    pub options: Vec<String>,
}

impl ModelSetup {
    /// A chip of this seed, with its flash in a file.
    #[must_use]
    pub fn new(seed: u64, flash: &Path) -> Self {
        Self { flash: Some(flash.into()), seed, ..Self::default() }
    }

    /// The same, with these options.
    #[must_use]
    pub fn with(mut self, options: &[&str]) -> Self {
        self.options.extend(options.iter().map(|&option| option.into()));
        self
    }
}

/// A board with an nRF52840.
#[derive(Debug)]
pub struct Model {
    /// Emulator, console and wire, as of any emulated board.
    pub board: EmulatedBoard,
    control: ControlPort,
}

impl Model {
    /// Starts the model with an image; `log` as for [`EmulatedBoard::start`].
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start(log: &Path, image: &Path, setup: &ModelSetup) -> Self {
        Self::start_on(EmulatedWire::new(setup.seed), log, image, setup)
    }

    /// Starts another model in this one's place, on the same wire: as when power comes back.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn restart(&mut self, log: &Path, image: &Path, setup: &ModelSetup) {
        self.board.emulator.kill();
        *self = Self::start_on(self.board.wire.clone(), log, image, setup);
    }

    fn start_on(wire: EmulatedWire, log: &Path, image: &Path, setup: &ModelSetup) -> Self {
        let mut models = Self::start_all(vec![wire], &[(log, image, setup)]);
        models.remove(0)
    }

    /// Starts several models on one clock, connected by radio, each as [`start`](Self::start) does. They are
    /// one process, which ends for all.
    ///
    /// # Panics
    /// If they cannot be started.
    #[must_use]
    pub fn together(chips: &[(&Path, &Path, &ModelSetup)]) -> Vec<Self> {
        let wires = chips.iter().map(|(_, _, setup)| EmulatedWire::new(setup.seed)).collect();
        Self::start_all(wires, chips)
    }

    fn start_all(wires: Vec<EmulatedWire>, chips: &[(&Path, &Path, &ModelSetup)]) -> Vec<Self> {
        let sockets: Vec<_> = chips.iter().map(|_| [listener(), listener()]).collect();
        let mut command = command();
        for (index, (_, image, setup)) in chips.iter().enumerate() {
            let [console, control] = &sockets[index];
            let ports = Ports { link: wires[index].port(End::Board), console: port(console) };
            command.args((index > 0).then_some("+")).args(chip(image, setup, port(control)));
            for (option, port) in [("--link", ports.link), ("--console", ports.console)] {
                command.args([option, &format!("tcp:127.0.0.1:{port}")]);
            }
        }
        let emulator = Process::start(command, chips[0].0);
        let models = chips.iter().zip(wires).zip(&sockets).map(|(((log, ..), wire), [console, control])| {
            let board = EmulatedBoard::dialled(emulator.clone(), console, wire, log);
            Self { board, control: ControlPort::new(accept(control, &emulator)) }
        });
        models.collect()
    }

    /// Sends a command and returns the model's answer, without the `ok`.
    ///
    /// # Panics
    /// If the model refuses it or has ended.
    pub fn order(&mut self, order: &str) -> String {
        self.control.command(order)
    }

    /// A number from the model's status, as [`ControlPort::status`].
    ///
    /// # Panics
    /// If there is no such number.
    pub fn status(&mut self, name: &str) -> u64 {
        self.control.status(name)
    }

    /// Seconds that have passed for the chip.
    ///
    /// # Panics
    /// If the model does not say.
    pub fn seconds(&mut self) -> f64 {
        let status = self.order("status");
        status.split(' ').nth(2).and_then(|seconds| seconds.parse().ok()).expect("seconds")
    }

    /// Lets the supply fail in the `number`-th flash operation from now.
    pub fn lose_power_at(&mut self, number: u64) {
        self.order(&format!("power-loss-at-write {number}"));
    }

    /// The model's exit status, once it has ended.
    pub fn ended(&mut self) -> ExitStatus {
        self.board.emulator.wait()
    }
}

/// The model, without arguments.
pub(crate) fn command() -> Command {
    let mut command = Command::new(python());
    command.env("PYTHONPATH", root().join("embedded/model")).env("PYTHONUNBUFFERED", "1");
    command.args(["-m", "nrf52840_model"]);
    command
}

/// Arguments for a chip that takes its orders from this port.
pub(crate) fn chip(image: &Path, setup: &ModelSetup, control: u16) -> Vec<OsString> {
    let mut arguments = vec![image.into(), "--control".into(), format!("tcp:127.0.0.1:{control}").into()];
    if let Some(flash) = &setup.flash {
        arguments.extend(["--flash".into(), flash.into()]);
    }
    arguments.extend(["--seed".into(), setup.seed.to_string().into()]);
    arguments.extend(setup.options.iter().map(OsString::from));
    arguments
}

/// A Python interpreter with the model's requirements.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn python() -> PathBuf {
    let own = || root().join("embedded/model/.venv/bin/python");
    let python = std::env::var_os("MODEL_PYTHON").map_or_else(own, PathBuf::from);
    assert!(
        python.exists(),
        "{} is missing: `python3 -m venv .venv && .venv/bin/pip install -r requirements.txt` in embedded/model, or name \
         another one in MODEL_PYTHON",
        python.display(),
    );
    python
}
