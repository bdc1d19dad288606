//! Sealing and opening for the console.

use alloc::string::{String, ToString};
use core::time::Duration;

use embedded_storage_async::nor_flash::MultiwriteNorFlash;
use quiver_abe::envelope::{
    AnyScheme, EnvelopeError, EnvelopeHeader, EnvelopeTarget, OpenedBytes, ReceivingSession, named_authority,
    open_bytes,
};
use quiver_crypto::{Hex, Zeroizing};
use quiver_envelope::{Author, DroneVerifier, EnvelopeCommand, EnvelopeEvent};
use quiver_link::Counter;
use quiver_machine::{Either, Primary};
use quiver_policy::Schema;
use rand_core::CryptoRngCore;

use super::BoardEdgeNode;
use super::attributes::LIMITS;
use super::reports::Escaped;
use crate::console::{MAX_LINE, Sealing};

/// The most leaves of a policy, or single attributes, to which a board seals: each takes 11 million
/// instructions, 18 if an attribute is used again, and an integer has one for each of its bits.
const MAX_TERMS: usize = 12;
/// Bytes of a message that are printed.
const SHOWN: usize = 4_096;
/// Bytes of a session's name that are printed.
const SHOWN_OF_NAME: usize = 8;

/// Reason why an envelope did not open.
enum Unopened {
    /// The envelope was not tried, for this reason.
    Refused(&'static str),
    Failed(EnvelopeError),
}

impl From<EnvelopeError> for Unopened {
    fn from(error: EnvelopeError) -> Self {
        Self::Failed(error)
    }
}

impl<F: MultiwriteNorFlash, R: CryptoRngCore> BoardEdgeNode<F, R> {
    /// Seals an envelope, as `seal` on the console asks.
    pub(super) async fn seal(&mut self, now: Duration, sealing: Sealing<'_>) {
        match self.order(&sealing) {
            Ok(command) => self.command(now, Either::Right(command)).await,
            Err(reason) => self.print_line(format_args!("error {reason}")),
        }
    }

    #[inline(never)]
    fn order(&self, sealing: &Sealing<'_>) -> Result<EnvelopeCommand, String> {
        let (entry, access) = self.attributes.of(sealing.authority).ok_or("no such attribute authority")?;
        let schema = Schema::decode(&entry.authority.schema).map_err(|error| error.to_string())?;
        let parameters = access.parameters();
        let read =
            if parameters.takes_policies() { EnvelopeTarget::policy } else { EnvelopeTarget::attributes };
        let target = read(sealing.target, &schema).map_err(|error| error.to_string())?;
        let terms = match &target {
            EnvelopeTarget::Policy(tree) => tree.formula().leaves().len(),
            EnvelopeTarget::Attributes(set) => set.atoms().count(),
        };
        if terms > MAX_TERMS {
            return Err(alloc::format!(
                "{terms} attributes with the bits of integers; a board seals to {MAX_TERMS}"
            ));
        }
        let authority = *parameters.authority().as_bytes();
        let data = sealing.text.as_bytes().to_vec();
        Ok(EnvelopeCommand::Seal { authority, target, data, signed: true })
    }

    /// Opens an envelope, as `open` on the console asks.
    pub(super) async fn open(&mut self, now: Duration, text: &str) {
        if !self.is_fit(now).await {
            return self.print_line(format_args!("error not now: flash or randomness fail"));
        }
        match self.try_open(now, text) {
            Ok((data, author)) => self.print_opened("opened", "file", author.as_ref(), &data),
            Err(Unopened::Refused(reason)) => self.print_line(format_args!("error {reason}")),
            Err(Unopened::Failed(EnvelopeError::NotSatisfied)) => {
                self.print_line(format_args!("error no key of this board fits"));
            }
            Err(Unopened::Failed(error)) => {
                self.report.add(Counter::BadEnvelopes);
                self.print_line(format_args!("error envelope: {error}"));
            }
        }
    }

    #[inline(never)]
    fn try_open(&self, now: Duration, text: &str) -> Result<OpenedBytes<Author>, Unopened> {
        let machine = self.machine.as_ref().ok_or(Unopened::Refused("not provisioned"))?;
        let mut bytes = Zeroizing::new([0; MAX_LINE / 2]);
        let place = bytes.get_mut(..text.len() / 2).ok_or(Unopened::Refused("too long"))?;
        hex::decode_to_slice(text, place).map_err(|_| Unopened::Refused("not hexadecimal"))?;
        let (header, chunks) = EnvelopeHeader::decode(place)?;
        let EnvelopeHeader::Opening(opening) = &header else {
            return Err(Unopened::Refused("a message of a session, which the session's first one opens"));
        };
        if opening.ciphertext().len() > LIMITS.ciphertext {
            return Err(Unopened::Refused("the policy or the attributes are too many for a board"));
        }
        if opening.group().is_some() {
            return Err(Unopened::Refused("said to a group, where it is to come from"));
        }
        let authority = named_authority(opening.ciphertext()).ok_or(EnvelopeError::NotSatisfied)?;
        let keys = self.attributes.keys.of(&authority);
        let fitting = keys.filter(|access| access.parameters().scheme() == opening.scheme());
        for (access, key) in fitting.filter_map(|access| Some((access, access.key()?))) {
            match ReceivingSession::open::<AnyScheme>(access.parameters(), key, opening) {
                Err(EnvelopeError::NotSatisfied) => {}
                session => {
                    let opener = session?.opener(&header)?;
                    let revoked = machine.revocations().list();
                    let verifier = DroneVerifier::new(machine.deployment(), revoked, self.clock.unix(now));
                    return Ok(open_bytes(opener, chunks, &verifier)?);
                }
            }
        }
        Err(EnvelopeError::NotSatisfied.into())
    }

    /// Prints an event of envelopes.
    pub(super) fn print_part_event(&mut self, event: EnvelopeEvent) {
        let name = |session: &[u8; 32]| {
            let mut shown = [0; SHOWN_OF_NAME];
            shown.iter_mut().zip(session).for_each(|(place, byte)| *place = *byte);
            shown
        };
        match event {
            EnvelopeEvent::Opened { session, data, author, .. } => {
                let session = alloc::format!("{}", Hex(&name(&session)));
                self.print_opened("envelope", &session, author.as_ref(), &data);
            }
            EnvelopeEvent::NotSatisfied { session } => {
                self.print_line(format_args!("unfit {}", Hex(&name(&session))));
            }
            EnvelopeEvent::TooLarge { session } => {
                self.print_line(format_args!("toolarge {}", Hex(&name(&session))));
            }
            EnvelopeEvent::NotSent(reason) => self.print_line(format_args!("unsent {reason}")),
            EnvelopeEvent::Sent { session, number } => {
                self.print_line(format_args!("sealed {} {number}", Hex(&name(&session))));
            }
        }
    }

    /// Prints `<what> <signer> <text>`; a colon, which no name has, shows that nobody signed.
    fn print_opened(&mut self, what: &str, from: &str, author: Option<&Author>, data: &[u8]) {
        let text = Escaped(data.get(..SHOWN).unwrap_or(data));
        let rest = data.len().saturating_sub(SHOWN);
        match author {
            Some(author) => self.print_line(format_args!("{what} {} {text}", author.name)),
            None => self.print_line(format_args!("{what} unsigned:{from} {text}")),
        }
        if rest > 0 {
            self.print_line(format_args!("{what} and {rest} bytes more"));
        }
    }
}
