//! What an edge must not forget, as bytes.

use alloc::boxed::Box;
use alloc::vec::Vec;

use quiver_ainq::{
    DroneKeypair, DronePublicKey, Epoch, Error, Header, Membership, Name, PendingEnrolment, Serial,
    SparePair, Suite,
};
use quiver_crypto::erase;
use serde::{Deserialize, Serialize};
use serde_bytes::Bytes;
use zeroize::Zeroizing;

use super::membership::history::Past;
use super::membership::member::KeptHeader;
use super::{Edge, EdgeConfig, EdgeEvent, Member, Standing};
use quiver_enrolment::Enrollee;
use quiver_machine::{RestoreError, Snapshot};

const VERSION: u8 = 4;
/// The longest encoding of a number or length: ten times seven bits.
const LONGEST_NUMBER: usize = 10;

/// What comes before the rest: the version (1 byte) and the deployment's fingerprint.
const HEAD_LEN: usize = 1 + 32;

/// Everything an edge persists behind version and deployment; replaced as a whole, as it is small (about 1 KB). What everybody may
/// know is borrowed and not erased.
#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    boot_no: u32,
    #[serde(with = "serde_bytes")]
    pending: Option<Vec<u8>>,
    #[serde(with = "serde_bytes")]
    public: Option<Vec<u8>>,
    #[serde(with = "serde_bytes")]
    secret: Option<Vec<u8>>,
    #[serde(borrow, with = "serde_bytes")]
    revocations: Option<&'a [u8]>,
    wanted: Option<&'a str>,
    #[serde(with = "serde_bytes")]
    spare: Option<Vec<u8>>,
    next_q: u64,
    /// The newest epoch of each group, and its header, which may be missing; that of the membership at the end.
    #[serde(borrow)]
    newest: Vec<(&'a str, u64, u64, &'a Bytes)>,
    #[serde(with = "serde_bytes")]
    membership: Option<Vec<u8>>,
    /// Leaders that contradicted themselves: serial, and where the proof has its place in a leader's memory nothing.
    #[serde(borrow)]
    refused: Vec<(Serial, &'a Bytes)>,
}

impl Drop for Stored<'_> {
    fn drop(&mut self) {
        // Each was allocated to size, so nothing is behind its end.
        let secrets = [&mut self.pending, &mut self.secret, &mut self.spare, &mut self.membership];
        secrets.into_iter().flatten().for_each(|secret| erase(secret));
    }
}

impl Stored<'_> {
    /// Bytes that the encoding takes at most. It is allocated once, so that serialising leaves no copy of a secret in
    /// memory that was outgrown; and with little to spare, because all of it is erased.
    fn longest(&self) -> usize {
        let owned = [&self.pending, &self.public, &self.secret, &self.spare, &self.membership];
        let owned = owned.into_iter().flatten().map(Vec::len);
        let shared =
            self.revocations.into_iter().chain([self.wanted.unwrap_or_default().as_bytes()]).map(<[u8]>::len);
        let newest =
            self.newest.iter().map(|(group, _, _, header)| group.len() + header.len() + 4 * LONGEST_NUMBER);
        let refused = self.refused.iter().map(|(serial, proof)| serial.len() + proof.len() + LONGEST_NUMBER);
        20 * LONGEST_NUMBER + owned.chain(shared).chain(newest).chain(refused).sum::<usize>()
    }
}

/// Where the encoding goes: a vector that has room for it.
struct Room(Vec<u8>);

impl postcard::ser_flavors::Flavor for Room {
    type Output = Vec<u8>;

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<Vec<u8>> {
        Ok(self.0)
    }
}

/// The vector itself, which [`Stored`] erases: a copy would be one more.
fn taken(mut secret: Zeroizing<Vec<u8>>) -> Vec<u8> {
    core::mem::take(&mut *secret)
}

impl<S: Suite> Edge<S> {
    /// The state to make durable before anything that depends on it is sent.
    pub(super) fn snapshot(&self) -> Snapshot {
        // What outlives a membership without a name would tell it from those of other drones.
        if let Some(ledger) = self.anonymous_snapshot() {
            return ledger;
        }
        let (held, membership) = match &self.standing {
            Standing::Member(member) => (Some(member), Some(taken(member.membership.encode()))),
            _ => (None, None),
        };
        let newest = self.history.iter().map(|past| {
            let held = held.filter(|member| *member.membership.group() == past.group);
            let header = held.map(|member| &member.header).or(past.header.as_ref());
            let header = header.map(KeptHeader::bytes).unwrap_or_default();
            (past.group.as_str(), past.epoch.term, past.epoch.counter, Bytes::new(header))
        });
        let stored = Stored {
            boot_no: self.boot_no,
            pending: self.enrollee.as_ref().map(|enrollee| taken(enrollee.encode())),
            public: self.keypair.as_ref().map(|keypair| keypair.public().encode()),
            secret: self.keypair.as_ref().map(|keypair| taken(keypair.to_bytes())),
            revocations: self.revocations.signed_bytes(),
            wanted: self.wanted.as_ref().map(Name::as_str),
            spare: self.spares.current.as_ref().map(|spare| taken(spare.encode())),
            next_q: self.spares.next_q,
            newest: newest.collect(),
            membership,
            refused: self.refused.iter().map(|(serial, proof)| (*serial, Bytes::new(proof))).collect(),
        };
        let mut room = Room(Vec::with_capacity(HEAD_LEN + stored.longest()));
        room.0.push(VERSION);
        room.0.extend_from_slice(&self.config.deployment.fingerprint());
        // Serialising plain fields into a vector has no way to fail.
        Snapshot::new(postcard::serialize_with_flavor(&stored, room).unwrap_or_default())
    }

    /// Puts a machine together from what it persisted.
    pub(super) fn restore(config: EdgeConfig<S>, snapshot: &Snapshot) -> Result<Self, RestoreError> {
        let (head, rest) = snapshot.as_bytes().split_at_checked(HEAD_LEN).ok_or(RestoreError::Damaged)?;
        let (found, fingerprint) = head.split_first().ok_or(RestoreError::Damaged)?;
        if *found != VERSION {
            return Err(RestoreError::OtherVersion { found: *found, expected: VERSION });
        }
        let stored: Stored<'_> = postcard::from_bytes(rest).map_err(|_| RestoreError::Damaged)?;
        if fingerprint != config.deployment.fingerprint() {
            return Err(RestoreError::Foreign);
        }
        let mut edge = Self::fresh(config);
        edge.boot_no = stored.boot_no;
        edge.wanted = stored.wanted.map(Name::new).transpose()?;
        edge.spares.current = stored.spare.as_deref().map(SparePair::decode).transpose()?;
        edge.spares.next_q = stored.next_q;
        for (group, term, counter, header) in &stored.newest {
            let epoch = Epoch { term: *term, counter: *counter };
            let header = (!header.is_empty()).then(|| KeptHeader::from_bytes(header));
            edge.history.push(Past { group: Name::new(group)?, epoch, header });
        }
        if let Some(list) = stored.revocations {
            edge.revocations.restore(&edge.config.deployment, list)?;
        }
        for (serial, _) in &stored.refused {
            edge.refused.insert(*serial, Vec::new());
        }
        edge.restore_keys(&stored)?;
        // What a leader had a part in costs the membership at most, never the key or what else is known.
        if let Err(error) = edge.restore_membership(&stored) {
            edge.out.event(EdgeEvent::MembershipDropped { error });
        }
        Ok(edge)
    }

    fn restore_keys(&mut self, stored: &Stored<'_>) -> Result<(), RestoreError> {
        if let Some(pending) = &stored.pending {
            let pending = PendingEnrolment::decode(pending)?;
            self.enrollee = Some(Box::new(Enrollee::resume(pending, &self.config.kgcs, self.backoff())));
        }
        if let (Some(public), Some(secret)) = (&stored.public, &stored.secret) {
            let public = DronePublicKey::decode(public)?;
            self.keypair = Some(DroneKeypair::restore(&self.config.deployment, public, secret)?);
        }
        Ok(())
    }

    /// The membership, and who is likely to speak next. Nothing changes if it does not hold.
    fn restore_membership(&mut self, stored: &Stored<'_>) -> Result<(), Error> {
        let Some(kept) = self.history.last_header().cloned() else {
            return stored.membership.as_ref().map_or(Ok(()), |_| Err(Error::Malformed("header")));
        };
        let header = Header::decode(kept.bytes(), &self.config.deployment)?;
        let membership = stored.membership.as_deref().map(Membership::restore).transpose()?;
        self.expected = Some(Box::new(header.core.leader));
        let Some(membership) = membership else { return Ok(()) };
        let backoff = self.backoff();
        let mut member = Member::new(membership, kept, backoff);
        member.leaving = stored.wanted.is_none().then_some(core::time::Duration::ZERO);
        self.standing = Standing::Member(member);
        // It may not have been acknowledged.
        self.spares.republish = self.spares.current.as_ref().map(|_| core::time::Duration::ZERO);
        Ok(())
    }
}
