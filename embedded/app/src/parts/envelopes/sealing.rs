//! Sealing and opening for the console.

use alloc::string::{String, ToString};

use quiver_abe::envelope::{
    AnyScheme, EnvelopeError, EnvelopeHeader, EnvelopeTarget, OpenedBytes, ReceivingSession, named_authority,
    open_bytes,
};
use quiver_crypto::Zeroizing;
use quiver_envelope::{Author, DroneVerifier, EnvelopeCommand};
use quiver_link::Counter;
use quiver_machine::Primary;
use quiver_policy::Schema;
use rand_core::CryptoRngCore;

use super::attribute_keys::HeldAttributes;
use super::{LIMITS, Sealing};
use crate::console::{ConsoleOutput, Escaped, MAX_LINE};
use crate::parts::PartContext;

/// The most leaves of a policy, or single attributes, to which a board seals: each takes 11 million
/// instructions, 18 if an attribute is used again, and an integer has one for each of its bits.
const MAX_TERMS: usize = 12;
/// Bytes of a message that are printed.
const SHOWN: usize = 4_096;

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

impl Sealing<'_> {
    /// Command that seals so, or the reason why there is none.
    #[inline(never)]
    pub(super) fn order(&self, held: &HeldAttributes) -> Result<EnvelopeCommand, String> {
        let (entry, access) = held.of(self.authority).ok_or("no such attribute authority")?;
        let schema = Schema::decode(&entry.authority.schema).map_err(|error| error.to_string())?;
        let parameters = access.parameters();
        let read =
            if parameters.takes_policies() { EnvelopeTarget::policy } else { EnvelopeTarget::attributes };
        let target = read(self.target, &schema).map_err(|error| error.to_string())?;
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
        let data = self.text.as_bytes().to_vec();
        Ok(EnvelopeCommand::Seal { authority, target, data, signed: true })
    }
}

/// Opens an envelope, as `open` on the console asks.
pub(super) fn open<R: CryptoRngCore>(cx: &mut PartContext<'_, R>, held: &HeldAttributes, text: &str) {
    if !cx.is_ready {
        return cx.print_line(format_args!("error not now: flash or randomness fail"));
    }
    match try_open(cx, held, text) {
        Ok((data, author)) => {
            print_opened(&mut cx.board.console, "opened", "file", author.as_ref(), &data);
        }
        Err(Unopened::Refused(reason)) => cx.print_line(format_args!("error {reason}")),
        Err(Unopened::Failed(EnvelopeError::NotSatisfied)) => {
            cx.print_line(format_args!("error no key of this board fits"));
        }
        Err(Unopened::Failed(error)) => {
            cx.board.report.add(Counter::BadEnvelopes);
            cx.print_line(format_args!("error envelope: {error}"));
        }
    }
}

#[inline(never)]
fn try_open<R: CryptoRngCore>(
    cx: &PartContext<'_, R>,
    held: &HeldAttributes,
    text: &str,
) -> Result<OpenedBytes<Author>, Unopened> {
    let edge = cx.edge.ok_or(Unopened::Refused("not provisioned"))?;
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
    let keys = held.keys.of(&authority);
    let fitting = keys.filter(|access| access.parameters().scheme() == opening.scheme());
    for (access, key) in fitting.filter_map(|access| Some((access, access.key()?))) {
        match ReceivingSession::open::<AnyScheme>(access.parameters(), key, opening) {
            Err(EnvelopeError::NotSatisfied) => {}
            session => {
                let opener = session?.opener(&header)?;
                let revoked = edge.revocations().list();
                let verifier = DroneVerifier::new(edge.deployment(), revoked, cx.board.clock.unix(cx.now));
                return Ok(open_bytes(opener, chunks, &verifier)?);
            }
        }
    }
    Err(EnvelopeError::NotSatisfied.into())
}

/// Prints `<what> <signer> <text>`; a colon, which no name has, shows that nobody signed.
pub(super) fn print_opened(
    console: &mut ConsoleOutput,
    what: &str,
    from: &str,
    author: Option<&Author>,
    data: &[u8],
) {
    let text = Escaped(data.get(..SHOWN).unwrap_or(data));
    let rest = data.len().saturating_sub(SHOWN);
    match author {
        Some(author) => console.print_line(format_args!("{what} {} {text}", author.name)),
        None => console.print_line(format_args!("{what} unsigned:{from} {text}")),
    }
    if rest > 0 {
        console.print_line(format_args!("{what} and {rest} bytes more"));
    }
}
