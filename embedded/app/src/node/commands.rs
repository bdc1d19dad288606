//! Executes the commands of the console.

use alloc::string::{String, ToString};
use core::time::Duration;

use embedded_storage_async::nor_flash::MultiwriteNorFlash;
use quiver_ainq::Name;
use quiver_crypto::Zeroizing;
use quiver_group::edge::{EdgeCommand, MAX_PROVISIONING_LEN, Provisioning};
use quiver_machine::{Either, Input};
use rand_core::CryptoRngCore;

use super::{BoardEdgeNode, MachineCommand, S};
use crate::Hooks;
use crate::console::{Command, ConsoleLine, HELP};
use crate::parts::{BesideCommand, BoardPart, CommandAnswer};
use crate::stored_state::StoredState;

/// The application channel on which the console sends.
const CHANNEL: &str = "chat";

/// Command of a line that is still to be executed.
type LineCommand<'a, P> = Option<Either<Command<'a>, BesideCommand<P>>>;

impl<F: MultiwriteNorFlash, R: CryptoRngCore, P: BoardPart> BoardEdgeNode<F, R, P> {
    /// Handles typed bytes.
    pub(crate) async fn handle_typed(&mut self, now: Duration, bytes: &[u8], hooks: &mut impl Hooks) {
        for byte in bytes {
            match self.lines.push(*byte) {
                None => {}
                Some(Err(_)) => self.print_line(format_args!("error line is too long")),
                Some(Ok(line)) => {
                    match self.read_line(now, &line) {
                        Ok(Some(Either::Left(command))) => self.run_command(now, command, hooks).await,
                        Ok(Some(Either::Right(command))) => self.command(now, Either::Right(command)).await,
                        // A part has executed it.
                        Ok(None) => {}
                        // Where a terminal echoes, what this board printed comes back, and an answer would, too, for
                        // ever.
                        Err(_) if line.starts_with(b"error ") => {}
                        Err(reason) => self.print_line(format_args!("error {reason}")),
                    }
                    hooks.alive();
                }
            }
        }
    }

    /// Reads a line: the command that is to be executed, of every image (left) or for the machine beside the edge
    /// (right). The error is the reason why it is none.
    #[inline(never)]
    fn read_line<'a>(&mut self, now: Duration, line: &'a [u8]) -> Result<LineCommand<'a, P>, &'static str> {
        let line = ConsoleLine::parse(line)?;
        if let Some(command) = Command::read(&line)? {
            return Ok(Some(Either::Left(command)));
        }
        match self.with_parts(now, |parts, cx| parts.command(cx, &line)) {
            CommandAnswer::Unknown => Err("no such command; try help"),
            CommandAnswer::Malformed(reason) => Err(reason),
            CommandAnswer::Done => Ok(None),
            CommandAnswer::Command(command) => Ok(Some(Either::Right(command))),
        }
    }

    async fn run_command(&mut self, now: Duration, command: Command<'_>, hooks: &mut impl Hooks) {
        match command {
            Command::Help => {
                P::print_help(&mut self.board.console);
                self.board.console.print_text(HELP);
            }
            Command::Status => self.print_status(now, hooks),
            Command::Provision(text) => self.provision(now, text).await,
            Command::Join(group) => self.command(now, Either::Left(EdgeCommand::Join(group))).await,
            Command::Leave => self.command(now, Either::Left(EdgeCommand::Leave)).await,
            Command::Send(text) => {
                // A constant that is a name.
                let Ok(channel) = Name::new(CHANNEL) else { return };
                let data = text.as_bytes().to_vec();
                let command = EdgeCommand::Send { channel, data, signed: true };
                self.command(now, Either::Left(command)).await;
            }
            Command::Wipe => self.wipe().await,
            Command::Reset => {
                self.print_line(format_args!("resetting"));
                self.must_reset = true;
            }
            Command::Bench(line) => hooks.bench(line, self.board.console.writer()).await,
        }
    }

    /// Hands a command to the machine, if it can take one.
    async fn command(&mut self, now: Duration, command: MachineCommand<P>) {
        if self.machine.is_none() {
            self.print_line(format_args!("error not provisioned"));
        } else if !self.is_fit(now).await {
            self.print_line(format_args!("error not now: flash or randomness fail"));
        } else {
            self.print_line(format_args!("ok"));
            self.input(now, Input::Command(command)).await;
        }
    }

    async fn provision(&mut self, now: Duration, text: &str) {
        match self.try_provision(now, text).await {
            Ok(()) => self.print_line(format_args!("provisioned")),
            Err(reason) => self.print_line(format_args!("error {reason}")),
        }
    }

    async fn try_provision(&mut self, now: Duration, text: &str) -> Result<(), String> {
        if self.board.settings.is_some() {
            return Err("provisioned already; wipe first".into());
        }
        let mut bytes = Zeroizing::new([0; MAX_PROVISIONING_LEN]);
        let len = text.len() / 2;
        let place = bytes.get_mut(..len).ok_or("too long")?;
        hex::decode_to_slice(text, place).map_err(|_| "not hexadecimal")?;
        let settings = Provisioning::<S>::decode(place).map_err(|error| error.to_string())?;
        if settings.token.is_none() {
            return Err("there is no token".into());
        }
        if !P::TAKES_QUORUMS && settings.kgcs.len() > 1 {
            return Err("this image enrols with a single KGC, not with a quorum".into());
        }
        if !self.is_fit(now).await {
            return Err("not now: flash or randomness fail".into());
        }
        self.save_settings(now, &settings).await.map_err(|error| error.to_string())?;
        self.create_machine(now, StoredState { settings, record: Zeroizing::default(), state: None });
        self.connect_machine(now).await;
        Ok(())
    }
}
