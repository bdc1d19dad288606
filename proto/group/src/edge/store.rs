//! The record of an edge: what it must not forget, as bytes (§15).

use alloc::vec::Vec;

use quiver_ainq::{Epoch, Name, Serial, SparePair, Suite};
use quiver_crypto::erase;
use quiver_machine::{RestoreError, Snapshot};
use serde::{Deserialize, Serialize};
use serde_bytes::Bytes;
use zeroize::Zeroizing;

use super::membership::history::{KeptHeader, PastMembership};
use super::{Edge, EdgeConfig, EdgeEvent, Settings};

const VERSION: u8 = 4;
/// The same with κ behind it: of an edge that shares a second factor with leaders.
const VERSION_WITH_KEM: u8 = 5;
/// The longest encoding of a number or length: ten times seven bits.
const LONGEST_NUMBER: usize = 10;

/// Length of the head: the version (1 byte) and the deployment's fingerprint (32 bytes).
const HEAD_LEN: usize = 1 + 32;

/// Record of an edge, persisted behind version and deployment; replaced as a whole, as it is small (about 1
/// KB). Public parts are borrowed and not erased.
#[derive(Serialize, Deserialize)]
struct EdgeRecord<'a> {
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
    /// The newest epoch of each group, and its header, which may be missing; that of the membership at the
    /// end.
    #[serde(borrow)]
    newest: Vec<(&'a str, u64, u64, &'a Bytes)>,
    #[serde(with = "serde_bytes")]
    membership: Option<Vec<u8>>,
    /// Leaders that contradicted themselves: serial, and nothing where the proof is in a leader's record.
    #[serde(borrow)]
    refused: Vec<(Serial, &'a Bytes)>,
}

impl Drop for EdgeRecord<'_> {
    fn drop(&mut self) {
        // Each was allocated to size, so nothing is behind its end.
        let secrets = [&mut self.pending, &mut self.secret, &mut self.spare, &mut self.membership];
        secrets.into_iter().flatten().for_each(|secret| erase(secret));
    }
}

impl EdgeRecord<'_> {
    /// Bytes that the encoding takes at most. It is allocated once, so that serialising leaves no copy of a
    /// secret in memory that was outgrown; and with little to spare, because all of it is erased.
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

/// κ with leaders: the leader's handle, κ as it is encoded, and when it was made.
#[derive(Serialize, Deserialize)]
struct KemRecord(Vec<([u8; 32], Vec<u8>, u64)>);

impl KemRecord {
    fn new(stored: Vec<super::kem_keys::StoredKey>) -> Self {
        Self(stored.into_iter().map(|(leader, key, made)| (leader, taken(key), made)).collect())
    }

    /// Bytes that the encoding takes at most.
    fn longest(&self) -> usize {
        let keys = self.0.iter().map(|(leader, key, _)| leader.len() + key.len() + 2 * LONGEST_NUMBER);
        LONGEST_NUMBER + keys.sum::<usize>()
    }
}

impl Drop for KemRecord {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(|(_, key, _)| erase(key));
    }
}

/// Receiver of the encoding: a vector with room for it.
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

/// The vector itself, which [`EdgeRecord`] erases: a copy would be one more.
fn taken(mut secret: Zeroizing<Vec<u8>>) -> Vec<u8> {
    core::mem::take(&mut *secret)
}

impl<S: Suite> Edge<S> {
    /// The state to make durable before anything that depends on it is sent.
    #[inline(never)]
    pub(super) fn snapshot(&self) -> Snapshot {
        let (member, keypair) = (self.membership.member.as_ref(), self.enrolment.keypair());
        let newest = self.membership.history.iter().map(|past| {
            let held = member.filter(|member| *member.membership.group() == past.group);
            let header = held.map(|member| &member.header).or(past.header.as_ref());
            let header = header.map(KeptHeader::bytes).unwrap_or_default();
            (past.group.as_str(), past.epoch.term, past.epoch.counter, Bytes::new(header))
        });
        let (spare, next_q) = self.membership.spare_points.stored();
        // §15: own key, one spare pair, the membership without K_g and path, newest epochs, refused leaders.
        let record = EdgeRecord {
            boot_no: self.boot_no,
            pending: self.enrolment.pending().map(taken),
            public: keypair.map(|keypair| keypair.public().encode()),
            secret: keypair.map(|keypair| taken(keypair.to_bytes())),
            revocations: self.revocations.signed_bytes(),
            wanted: self.wanted.as_ref().map(Name::as_str),
            spare: spare.map(|spare| taken(spare.encode())),
            next_q,
            newest: newest.collect(),
            membership: member.map(|member| taken(member.membership.encode())),
            refused: self
                .leaders
                .refused
                .iter()
                .map(|(leader, proof)| (*leader, Bytes::new(proof)))
                .collect(),
        };
        let kem = KemRecord::new(self.membership.kem.stored());
        let (version, extra) = (if kem.0.is_empty() { VERSION } else { VERSION_WITH_KEM }, kem.longest());
        let mut room = Room(Vec::with_capacity(HEAD_LEN + record.longest() + extra));
        room.0.push(version);
        room.0.extend_from_slice(&self.config.deployment.fingerprint());
        // Serialising plain fields into a vector has no way to fail.
        let encoded = postcard::serialize_with_flavor(&record, room).unwrap_or_default();
        let encoded = if version == VERSION {
            encoded
        } else {
            // §24.8: into the room that was set aside.
            postcard::serialize_with_flavor(&kem, Room(encoded)).unwrap_or_default()
        };
        Snapshot::new(encoded)
    }

    /// Puts a machine together from what it persisted.
    pub(super) fn replay(config: EdgeConfig<S>, snapshot: &Snapshot) -> Result<Self, RestoreError> {
        let (head, rest) = snapshot.as_bytes().split_at_checked(HEAD_LEN).ok_or(RestoreError::Damaged)?;
        let (found, fingerprint) = head.split_first().ok_or(RestoreError::Damaged)?;
        let known = [VERSION, VERSION_WITH_KEM].contains(found);
        if !known {
            return Err(RestoreError::OtherVersion { found: *found, expected: VERSION });
        }
        let (record, rest): (EdgeRecord<'_>, _) =
            postcard::take_from_bytes(rest).map_err(|_| RestoreError::Damaged)?;
        if fingerprint != config.deployment.fingerprint() {
            return Err(RestoreError::Foreign);
        }
        let mut edge = Self::fresh(config);
        if *found == VERSION_WITH_KEM {
            let kem: KemRecord = postcard::from_bytes(rest).map_err(|_| RestoreError::Damaged)?;
            for (leader, key, made) in &kem.0 {
                edge.membership.kem.restore(*leader, key, *made)?;
            }
        }
        // §13.2: what the start raises before the first message.
        edge.boot_no = record.boot_no;
        edge.wanted = record.wanted.map(Name::new).transpose()?;
        let spare = record.spare.as_deref().map(SparePair::decode).transpose()?;
        edge.membership.spare_points.restore(spare, record.next_q);
        for (group, term, counter, header) in &record.newest {
            let epoch = Epoch { term: *term, counter: *counter };
            let header = (!header.is_empty()).then(|| KeptHeader::from_bytes(header));
            edge.membership.history.push(PastMembership { group: Name::new(group)?, epoch, header });
        }
        let Settings { deployment, timing, .. } = &edge.config;
        if let Some(list) = record.revocations {
            edge.revocations.restore(deployment, list)?;
        }
        // §15: the serials of refused leaders, without the proofs.
        for (leader, _) in &record.refused {
            edge.leaders.refused.insert(*leader, Vec::new());
        }
        if let Some(pending) = &record.pending {
            edge.enrolment.resume(pending, timing.backoff())?;
        }
        if let (Some(public), Some(secret)) = (&record.public, &record.secret) {
            edge.enrolment.restore_keypair(deployment, public, secret)?;
        }
        // §7.3: what a leader had a part in costs the membership at most, never the key or what else is
        // known.
        let (member, leaves) = (record.membership.as_deref(), record.wanted.is_none());
        if let Err(error) = edge.membership.restore(deployment, member, leaves, timing.backoff()) {
            edge.out.event(EdgeEvent::MembershipDropped { error });
        }
        if !edge.membership.is_member() {
            // §12.1: a spare pair is of use to a member alone; the next join draws another.
            edge.membership.spare_points.discard();
        }
        Ok(edge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_encoding_outgrows_the_memory_that_was_set_aside_for_it() {
        let (name, serial) = ("a".repeat(64), [0xFF; 16]);
        let header = alloc::vec![0xFF; 300];
        let bytes = || Some(alloc::vec![0xFF; 200]);
        // Numbers as long as they get, of as many groups as an identity names.
        let record = EdgeRecord {
            boot_no: u32::MAX,
            pending: bytes(),
            public: bytes(),
            secret: bytes(),
            revocations: Some(&header),
            wanted: Some(&name),
            spare: bytes(),
            next_q: u64::MAX,
            newest: alloc::vec![(name.as_str(), u64::MAX, u64::MAX, Bytes::new(&header)); quiver_ainq::MAX_GROUPS],
            membership: bytes(),
            refused: alloc::vec![(serial, Bytes::new(&header)); 16],
        };
        let encoded = postcard::serialize_with_flavor(&record, Room(Vec::new())).unwrap();
        assert!(encoded.len() <= record.longest(), "{} of {}", encoded.len(), record.longest());
    }
}
