//! Revocation lists: signed by the KGC, numbered, carried by anybody.
//!
//! ```text
//! head = number ‖ issued ‖ next_update ‖ leaders ‖ H(edges)
//! list = lp(head) ‖ signature over head ‖ edges            of 0 edges, nothing
//! ```
//!
//! `leaders` and `edges` are a count and that many entries, each a serial (16 bytes) and when that identity
//! ends (8 bytes). The end stands there so that anybody can tell whether an entry was left out of the next
//! list rightly: a KGC of a quorum knows of no drone but those that it helped to issue, and could not tell by
//! its own records. It costs a list of [`MAX_REVOCATION_LIST_LEN`] a third of its entries, and an entry its
//! stay for ever.
//!
//! One signature covers both forms of a list: whole, and without its edges
//! ([`VerifiedRevocationList::leaders_only`]). The latter is all that an edge needs to leave a revoked
//! leader, and fits a board's messages with hundreds of leaders.

use alloc::vec::Vec;
use core::ops::Deref;

use quiver_crypto::Hasher;
use quiver_crypto::canonical::{Malformed, Reader, Writer};
use rand_core::CryptoRngCore;

use crate::{
    Deployment, DronePublicKey, Error, Identity, MasterSecret, Purpose, Role, StatementSignature, Suite,
    UnixTime,
};

/// Bytes a signed revocation list may have: some 41,600 drones, and a frame around it is still a message of 1
/// MiB.
pub const MAX_REVOCATION_LIST_LEN: usize = 1_000_000;

/// Time after its end for which an identity stays in revocation lists, in seconds: a day. By then no clock
/// that is merely wrong takes it for valid.
pub const REVOCATION_MARGIN: u64 = 86_400;

/// Bytes of a list, with its edges or without, that a board takes in one message: some 330 leaders.
pub const BOARD_REVOCATION_LIST_LEN: usize = 8 * 1024;

/// Bytes of an entry.
const ENTRY_LEN: usize = 16 + 8;

/// A drone that is no longer valid, with all the keys it ever had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revoked {
    /// Serial of the drone, which is its token's id.
    pub serial: [u8; 16],
    /// End of its identity; [`UnixTime::MAX`] if unknown.
    pub not_after: UnixTime,
    /// True if it may lead, which edges must know; also if that is not known.
    pub leader: bool,
}

impl Revoked {
    /// A drone of which only the serial is known: never left out of lists, and listed for edges too.
    #[must_use]
    pub const fn unknown(serial: [u8; 16]) -> Self {
        Self { serial, not_after: UnixTime::MAX, leader: true }
    }

    /// Returns true if the identity ended so long ago that lists need not name it any more.
    #[must_use]
    pub const fn has_ended(&self, now: UnixTime) -> bool {
        // §12.3: a day after its end a drone is left out of the next list.
        self.not_after.saturating_add(REVOCATION_MARGIN) < now
    }

    /// Returns true if this entry covers another of the same drone: as long, and for as many readers.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.serial == other.serial && self.not_after >= other.not_after && (self.leader || !other.leader)
    }

    /// The entry of a drone that covers both.
    #[must_use]
    pub fn and(self, other: &Self) -> Self {
        let not_after = if self.not_after > other.not_after { self.not_after } else { other.not_after };
        Self { serial: self.serial, not_after, leader: self.leader || other.leader }
    }

    /// Leaders come first, then serials ascend.
    const fn key(&self) -> (bool, [u8; 16]) {
        (!self.leader, self.serial)
    }
}

impl From<&Identity> for Revoked {
    fn from(identity: &Identity) -> Self {
        let leader = matches!(identity.role, Role::Leader { .. });
        Self { serial: identity.serial, not_after: identity.not_after, leader }
    }
}

/// Drones that are no longer valid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RevocationStatement {
    /// Rises with every list; every node keeps the highest. At least the time of issue, so that a KGC whose
    /// state went back does not count from there.
    pub number: u64,
    /// Time of issue.
    pub issued: UnixTime,
    /// Time by which the next one is due.
    pub next_update: UnixTime,
    /// Leaders, then edges; of either ascending serials, none twice.
    pub revoked: Vec<Revoked>,
}

impl RevocationStatement {
    /// The empty list of number 0, from which a role starts.
    #[must_use]
    pub const fn empty() -> Self {
        Self { number: 0, issued: 0, next_update: 0, revoked: Vec::new() }
    }

    /// Returns true if the list names this key's drone.
    #[must_use]
    pub fn names<S: Suite>(&self, public: &DronePublicKey<S>) -> bool {
        self.names_serial(&public.identity.serial)
    }

    /// Returns true if the list names this drone.
    #[must_use]
    pub fn names_serial(&self, serial: &[u8; 16]) -> bool {
        self.find(serial).is_some()
    }

    /// The entry of a drone.
    #[must_use]
    pub fn find(&self, serial: &[u8; 16]) -> Option<&Revoked> {
        let place = [false, true]
            .into_iter()
            .find_map(|edge| self.revoked.binary_search_by_key(&(edge, *serial), Revoked::key).ok())?;
        self.revoked.get(place)
    }

    /// Returns true if a newer list is due and this one may lack what that names. Number 0, no list at all,
    /// is never stale: there may be none yet.
    #[must_use]
    pub const fn is_stale(&self, now: UnixTime) -> bool {
        // §12.6: no list at all (number 0) is not stale.
        self.number > 0 && self.next_update < now
    }

    /// Brings the entries in order: of a drone that is named twice, an entry that covers both.
    pub fn sort(&mut self) {
        // One entry per serial, which covers all that were given.
        self.revoked.sort_unstable_by_key(|one| one.serial);
        self.revoked.dedup_by(|next, kept| {
            let same = next.serial == kept.serial;
            if same {
                *kept = kept.and(next);
            }
            same
        });
        // Leaders first, each part ascending: the one encoding of the set.
        self.revoked.sort_unstable_by_key(Revoked::key);
    }

    /// Number of leaders, who come first.
    fn leaders(&self) -> usize {
        self.revoked.partition_point(|one| one.leader)
    }

    /// The body of the signed statement: the head.
    #[must_use]
    pub fn statement(&self) -> Vec<u8> {
        self.head(&digest(&self.edges()))
    }

    fn head(&self, edges: &[u8; 32]) -> Vec<u8> {
        // §12.3: head = number ‖ issued ‖ next update ‖ leaders ‖ H("quiver/1 revoked edges", edges).
        let mut writer = Writer::new();
        writer.u64(self.number).u64(self.issued).u64(self.next_update);
        write_entries(&mut writer, self.revoked.iter().take_while(|one| one.leader));
        writer.fixed(edges).finish()
    }

    /// The entries of edges, encoded; nothing if there are none.
    fn edges(&self) -> Vec<u8> {
        let edges = self.revoked.get(self.leaders()..).unwrap_or_default();
        let mut writer = Writer::new();
        if !edges.is_empty() {
            write_entries(&mut writer, edges.iter());
        }
        writer.finish()
    }

    /// The whole list without a signature: `lp(head) ‖ edges`.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let edges = self.edges();
        let mut writer = Writer::new();
        writer.lp(&self.head(&digest(&edges))).fixed(&edges);
        writer.finish()
    }

    /// Reads a whole list. Whether it was signed is for the caller to ask.
    ///
    /// # Errors
    /// [`Error::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let (mut list, hash) = Self::read_head(reader.lp(bytes.len())?)?;
        if !list.read_edges(reader.take(reader.remaining())?, &hash)? {
            return Err(Error::Malformed("a revocation list without its edges"));
        }
        Ok(list)
    }

    /// The number that an encoded list claims, signed or not: the caller compares it before anything is
    /// decoded, which for a signed list takes a square root.
    ///
    /// # Errors
    /// [`Error::Malformed`].
    pub fn claimed_number(bytes: &[u8]) -> Result<u64, Error> {
        // §12.7: a list whose claimed number is not higher is dropped before its signature is verified.
        let head = Reader::new(bytes).lp(bytes.len())?;
        Ok(Reader::new(head).u64()?)
    }

    /// Reads a head: the list without its edges, and their hash.
    fn read_head(bytes: &[u8]) -> Result<(Self, [u8; 32]), Error> {
        let mut reader = Reader::new(bytes);
        let (number, issued, next_update) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let mut list = Self { number, issued, next_update, revoked: Vec::new() };
        list.read_entries(&mut reader, true)?;
        let hash = reader.array()?;
        reader.end()?;
        list.check()?;
        Ok((list, hash))
    }

    /// Reads the edges that belong to a head. Returns whether these were all, and not left out.
    fn read_edges(&mut self, bytes: &[u8], hash: &[u8; 32]) -> Result<bool, Error> {
        // §12.4: without its edges the list is the shorter form, which the same signature covers.
        if digest(bytes) != *hash {
            if bytes.is_empty() {
                return Ok(false);
            }
            return Err(Error::Malformed("a revocation list of other edges"));
        }
        if !bytes.is_empty() {
            let mut reader = Reader::new(bytes);
            self.read_entries(&mut reader, false)?;
            reader.end()?;
            self.check()?;
        }
        Ok(true)
    }

    fn read_entries(&mut self, reader: &mut Reader<'_>, leader: bool) -> Result<(), Malformed> {
        let count = reader.count(MAX_REVOCATION_LIST_LEN / ENTRY_LEN, ENTRY_LEN)?;
        self.revoked.reserve_exact(count);
        for _ in 0..count {
            self.revoked.push(Revoked { serial: reader.array()?, not_after: reader.u64()?, leader });
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Error> {
        // One encoding for one list: leaders, then edges, serials ascending, none twice.
        if !self.revoked.is_sorted_by(|a, b| a.key() < b.key()) {
            return Err(Error::Malformed("a revocation list must ascend"));
        }
        if self.next_update < self.issued {
            return Err(Error::Malformed("a revocation list ends before it begins"));
        }
        Ok(())
    }
}

fn write_entries<'a>(writer: &mut Writer, entries: impl Iterator<Item = &'a Revoked> + Clone) {
    writer.count(entries.clone().count());
    for entry in entries {
        writer.fixed(&entry.serial).u64(entry.not_after);
    }
}

/// H(edges).
fn digest(edges: &[u8]) -> [u8; 32] {
    Hasher::new("quiver/1 revoked edges").lp(edges).finish()
}

/// A revocation list whose signature is not verified yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedRevocationList<S: Suite> {
    list: RevocationStatement,
    whole: bool,
    signature: StatementSignature<S>,
    bytes: Vec<u8>,
}

impl<S: Suite> MasterSecret<S> {
    /// Signs a revocation list, after sorting it.
    ///
    /// # Errors
    /// [`Error::TooLong`], or [`Error::Malformed`] if the next update is due before the list is issued.
    pub fn sign_revocations(
        &self,
        deployment: &Deployment<S>,
        mut list: RevocationStatement,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<SignedRevocationList<S>, Error> {
        list.sort();
        // §12.3: the head alone is signed; it has the hash of the edges.
        let signature = self.sign(deployment, Purpose::Revocation, &list.statement(), rng);
        SignedRevocationList::new(list, signature)
    }
}

impl<S: Suite> SignedRevocationList<S> {
    /// Puts a whole list and a signature on it together that was made elsewhere, for instance by a quorum.
    ///
    /// # Errors
    /// [`Error::TooLong`], or [`Error::Malformed`] unless the list ascends and ends after it begins.
    pub fn new(list: RevocationStatement, signature: StatementSignature<S>) -> Result<Self, Error> {
        list.check()?;
        let edges = list.edges();
        let hash = digest(&edges);
        // §12.3: list = lp(head) ‖ signature on head ‖ edges.
        let bytes = Writer::new().lp(&list.head(&hash)).fixed(&signature.encode()).fixed(&edges).finish();
        if bytes.len() > MAX_REVOCATION_LIST_LEN {
            return Err(Error::TooLong { what: "revocation list", limit: MAX_REVOCATION_LIST_LEN });
        }
        Ok(Self { list, whole: true, signature, bytes })
    }

    /// Returns true if the edges are there, too.
    pub const fn is_whole(&self) -> bool {
        self.whole
    }

    /// The list, not verified.
    pub const fn unverified(&self) -> &RevocationStatement {
        &self.list
    }

    /// The encoding without the edges: as good a list for nodes that need leaders alone.
    #[must_use]
    pub fn leaders_only(&self) -> &[u8] {
        // §12.4: the shorter form ends behind the signature.
        let head = Reader::new(&self.bytes).lp(MAX_REVOCATION_LIST_LEN).map_or(0, <[u8]>::len);
        self.bytes.get(..4 + head + StatementSignature::<S>::LEN).unwrap_or(&self.bytes)
    }

    /// The encoding. At most [`MAX_REVOCATION_LIST_LEN`] bytes.
    pub fn encode(&self) -> Vec<u8> {
        self.bytes.clone()
    }

    /// Reads the encoding, with or without the edges.
    ///
    /// # Errors
    /// [`Error::TooLong`], [`Error::Malformed`], [`Error::InvalidPoint`], [`Error::IdentityPoint`] or
    /// [`Error::InvalidScalar`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.len() > MAX_REVOCATION_LIST_LEN {
            return Err(Error::TooLong { what: "revocation list", limit: MAX_REVOCATION_LIST_LEN });
        }
        let mut reader = Reader::new(bytes);
        let (mut list, edges) = RevocationStatement::read_head(reader.lp(MAX_REVOCATION_LIST_LEN)?)?;
        let signature = StatementSignature::decode(reader.take(StatementSignature::<S>::LEN)?)?;
        let whole = list.read_edges(reader.take(reader.remaining())?, &edges)?;
        Ok(Self { list, whole, signature, bytes: bytes.to_vec() })
    }

    /// Checks that the KGC of `deployment` signed the list. Whether it is new and in time is for the caller
    /// to say.
    ///
    /// # Errors
    /// [`Error::InvalidSignature`].
    pub fn verify(self, deployment: &Deployment<S>) -> Result<VerifiedRevocationList<S>, Error> {
        // §12.3: a head has one encoding: what was read is what was signed.
        let head = Reader::new(&self.bytes).lp(MAX_REVOCATION_LIST_LEN)?;
        self.signature.verify(deployment, Purpose::Revocation, head)?;
        Ok(VerifiedRevocationList(self))
    }
}

/// A revocation list the KGC signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedRevocationList<S: Suite>(SignedRevocationList<S>);

impl<S: Suite> VerifiedRevocationList<S> {
    /// The signed encoding, to be passed on.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    /// The signed encoding without the edges: as good a list for nodes that need leaders alone.
    #[must_use]
    pub fn leaders_only(&self) -> &[u8] {
        self.0.leaders_only()
    }

    /// Returns true if the edges are there, too.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.0.whole
    }

    /// The KGC's signature.
    #[must_use]
    pub const fn signature(&self) -> &StatementSignature<S> {
        &self.0.signature
    }
}

impl<S: Suite> Deref for VerifiedRevocationList<S> {
    type Target = RevocationStatement;

    fn deref(&self) -> &RevocationStatement {
        &self.0.list
    }
}
