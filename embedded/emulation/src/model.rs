//! The nRF52840 in its model (`embedded/model`): a board whose surroundings take orders, such as a pressed button.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use crate::board::{Board, Ports};
use crate::build::root;
use crate::patience::{PATIENCE, eventually};
use crate::wire::Wire;

/// The exit status of a model whose supply failed in the flash operation it was told to fail in.
pub const POWER_LOST: i32 = 75;

/// How a model is set up.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// Where flash is kept; without a file it is gone with the model.
    pub flash: Option<PathBuf>,
    /// Of everything random: what the generator delivers, the chip's number, which frames are lost.
    pub seed: u64,
    /// Whether it has a radio.
    pub radio: bool,
    /// More options of the model's command line.
    pub options: Vec<String>,
}

impl Setup {
    /// A chip of this seed, with its flash in a file.
    #[must_use]
    pub fn new(seed: u64, flash: &Path) -> Self {
        Self { flash: Some(flash.into()), seed, ..Self::default() }
    }

    /// The same, with a radio.
    #[must_use]
    pub fn on_air(mut self) -> Self {
        self.radio = true;
        self
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
    pub board: Board,
    orders: TcpStream,
    answers: BufReader<TcpStream>,
}

impl Model {
    /// Starts the model with an image; `log` as for [`Board::start`].
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start(log: &Path, image: &Path, setup: &Setup) -> Self {
        Self::start_on(Wire::new(setup.seed), log, image, setup)
    }

    /// Starts another model in this one's place, on the same wire: as when power comes back.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn restart(&mut self, log: &Path, image: &Path, setup: &Setup) {
        self.board.emulator.kill();
        *self = Self::start_on(self.board.wire.clone(), log, image, setup);
    }

    fn start_on(wire: Wire, log: &Path, image: &Path, setup: &Setup) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port on loopback");
        listener.set_nonblocking(true).expect("a socket option");
        let control = listener.local_addr().expect("bound").port();
        let mut board = Board::start_on(wire, log, |ports| command(image, setup, ports, control));
        let orders = eventually("the model asks for orders", || match listener.accept() {
            Ok((socket, _)) => Some(socket),
            Err(_) => {
                assert!(board.emulator.is_running(), "{}", board.emulator.story());
                None
            }
        });
        orders.set_nonblocking(false).expect("a socket option");
        orders.set_read_timeout(Some(PATIENCE)).expect("a socket option");
        let answers = BufReader::new(orders.try_clone().expect("clone"));
        Self { board, orders, answers }
    }

    /// Gives an order and returns what the model answers to it, without the `ok`.
    ///
    /// # Panics
    /// If the model refuses it or has ended.
    pub fn order(&mut self, order: &str) -> String {
        self.orders.write_all(format!("{order}\n").as_bytes()).expect("the model listens");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("the model answers");
        let answer = answer.trim();
        let rest = answer.strip_prefix("ok").unwrap_or_else(|| panic!("{order}: {answer:?}"));
        rest.trim().into()
    }

    /// A number from the model's status: `resets`, `flash-operations`, `frames-sent`, `frames-received`, `frames-lost`,
    /// `overruns`.
    ///
    /// # Panics
    /// If there is no such number.
    pub fn status(&mut self, name: &str) -> u64 {
        let status = self.order("status");
        let mut words = status.split(' ').skip_while(|word| *word != name);
        let number = words.nth(1).and_then(|number| number.parse().ok());
        number.unwrap_or_else(|| panic!("no {name} in {status}"))
    }

    /// Seconds that have passed for the chip.
    ///
    /// # Panics
    /// If the model does not say.
    pub fn seconds(&mut self) -> f64 {
        let status = self.order("status");
        status.split(' ').nth(2).and_then(|seconds| seconds.parse().ok()).expect("seconds")
    }

    /// Lets radios hear each other, each all others.
    pub fn share_the_air(models: &mut [&mut Self]) {
        let ports: Vec<_> = models
            .iter_mut()
            .map(|model| model.order("radio").trim_start_matches("radio ").to_string())
            .collect();
        for (index, model) in models.iter_mut().enumerate() {
            let others = ports.iter().enumerate().filter(|(other, _)| *other != index);
            let others: Vec<_> = others.map(|(_, port)| port.as_str()).collect();
            model.order(&format!("peers {}", others.join(",")));
        }
    }

    /// Lets the supply fail in the `number`-th flash operation from now.
    pub fn lose_power_at(&mut self, number: u64) {
        self.order(&format!("power-loss-at-write {number}"));
    }

    /// How the model ended, once it has.
    pub fn ended(&mut self) -> ExitStatus {
        self.board.emulator.wait()
    }
}

fn command(image: &Path, setup: &Setup, ports: Ports, control: u16) -> Command {
    let model = root().join("embedded/model");
    let mut command = Command::new(python());
    command.env("PYTHONPATH", &model).env("PYTHONUNBUFFERED", "1").args(["-m", "nrf52840_model"]).arg(image);
    for (option, port) in [("--link", ports.link), ("--console", ports.console), ("--control", control)] {
        command.args([option, &format!("tcp:127.0.0.1:{port}")]);
    }
    if let Some(flash) = &setup.flash {
        command.arg("--flash").arg(flash);
    }
    if setup.radio {
        command.args(["--radio", "0"]);
    }
    command.args(["--seed", &setup.seed.to_string()]).args(&setup.options);
    command
}

/// A Python that has what the model needs.
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
