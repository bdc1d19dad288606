//! Executes the commands of the console.

use alloc::string::ToString;
use core::time::Duration;

use embedded_storage_async::nor_flash::MultiwriteNorFlash;
use quiver_ainq::Name;
use quiver_crypto::Zeroizing;
use quiver_group::edge::{EdgeCommand, MAX_PROVISIONING_LEN, Provisioning};
use quiver_machine::{Either, Input};
use rand_core::CryptoRngCore;

use super::{BoardEdgeNode, EdgeNodeCommand, S};
use crate::Hooks;
use crate::console::{Command, HELP};
use crate::stored_state::StoredState;

/// The application channel on which the console sends.
const CHANNEL: &str = "chat";

impl<F: MultiwriteNorFlash, R: CryptoRngCore> BoardEdgeNode<F, R> {
    /// Handles typed bytes.
    pub(crate) async fn handle_typed(&mut self, now: Duration, bytes: &[u8], hooks: &mut impl Hooks) {
        for byte in bytes {
            match self.lines.push(*byte) {
                None => {}
                Some(Err(_)) => self.print_line(format_args!("error line is too long")),
                Some(Ok(line)) => {
                    match Command::parse(&line) {
                        Ok(command) => self.run_command(now, command, hooks).await,
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

    /// Wipes the state because the button was held.
    pub(crate) async fn button(&mut self) {
        self.wipe().await;
    }

    async fn run_command(&mut self, now: Duration, command: Command<'_>, hooks: &mut impl Hooks) {
        match command {
            Command::Help => {
                #[cfg(feature = "envelopes")]
                crate::console::ENVELOPES.lines().for_each(|line| self.print_line(format_args!("{line}")));
                #[cfg(feature = "datagrams")]
                crate::console::DATAGRAMS.lines().for_each(|line| self.print_line(format_args!("{line}")));
                HELP.lines().for_each(|line| self.print_line(format_args!("{line}")));
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
            #[cfg(feature = "datagrams")]
            Command::Datagram(text) => self.send_datagram(now, text, false),
            #[cfg(feature = "datagrams")]
            Command::SignedDatagram(text) => self.send_datagram(now, text, true),
            #[cfg(feature = "envelopes")]
            Command::Fetch => self.fetch(now),
            #[cfg(feature = "envelopes")]
            Command::Attributes => {
                self.print_attributes();
                self.print_line(format_args!("end"));
            }
            #[cfg(feature = "envelopes")]
            Command::Seal(sealing) => self.seal(now, sealing).await,
            #[cfg(feature = "envelopes")]
            Command::Open(text) => self.open(now, text).await,
            Command::Wipe => self.wipe().await,
            Command::Reset => {
                self.print_line(format_args!("resetting"));
                self.must_reset = true;
            }
            Command::Bench(line) => hooks.bench(line, &mut self.out).await,
        }
    }

    /// Hands a command to the machine, if it can take one.
    pub(super) async fn command(&mut self, now: Duration, command: EdgeNodeCommand) {
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

    async fn try_provision(&mut self, now: Duration, text: &str) -> Result<(), alloc::string::String> {
        if self.settings.is_some() {
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
        if cfg!(not(feature = "quorum")) && settings.kgcs.len() > 1 {
            return Err("this image enrols with a single KGC, not with a quorum".into());
        }
        if !self.is_fit(now).await {
            return Err("not now: flash or randomness fail".into());
        }
        self.save_settings(now, &settings).await.map_err(|error| error.to_string())?;
        self.set_up(now, StoredState { settings, keyring: Zeroizing::default(), state: None }).await;
        Ok(())
    }
}
