//! A KGC's record of a key generation, in memory and in storage.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use quiver_ainq::KgcId;
use quiver_crypto::canonical::{Reader, Writer};
use quiver_crypto::{Digest, Hasher, Secret, Zeroizing, ct_eq};

use super::message::blame;
use super::plan::{CeremonyPlan, Dealt, Old};
use super::{CeremonyOutcome, package_len};
use crate::public::read_kind;
use crate::suite::SCALAR_LEN;
use crate::{Error, PublicShares, QuorumParameters, QuorumSuite, SecretShare};

const KIND: &str = "quiver/1 quorum ceremony";

/// The round a record was stored in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DkgRound {
    Dealing = 1,
    Echoing = 2,
    Sharing = 3,
}

/// A plan, and the messages received so far.
#[derive(derive_more::Debug)]
#[debug("KGC {} of {:?}, refreshing: {}", plan.kgc, plan.parameters, plan.old.is_some())]
pub(super) struct CeremonyRecord<S: QuorumSuite> {
    plan: CeremonyPlan<S>,
    /// Package of this KGC.
    own: Vec<u8>,
    /// The others' packages.
    packages: BTreeMap<KgcId, Vec<u8>>,
    /// KGCs that have the same packages.
    echoes: BTreeSet<KgcId>,
    /// Polynomials of the others at this KGC's identifier.
    shares: BTreeMap<KgcId, Secret<SCALAR_LEN>>,
}

impl<S: QuorumSuite> CeremonyRecord<S> {
    pub(super) fn new(plan: CeremonyPlan<S>) -> Result<Self, Error> {
        // §5.2: drawn from the seed, so the same bytes again after a crash.
        let own = plan.encode_package(&plan.part1()?.1)?;
        let (packages, echoes, shares) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        Ok(Self { plan, own, packages, echoes, shares })
    }

    pub(super) fn own_package(&self) -> &[u8] {
        &self.own
    }

    /// Refuses messages of KGCs that there are not, and of this one itself.
    fn check_sender(&self, from: KgcId) -> Result<(), Error> {
        self.plan.parameters.check(from)?;
        if from == self.plan.kgc { Err(Error::UnknownKgc(from)) } else { Ok(()) }
    }

    pub(super) fn receive_package(&mut self, from: KgcId, bytes: &[u8]) -> Result<(), Error> {
        self.check_sender(from)?;
        if let Some(known) = self.packages.get(&from) {
            // §5.2: what contradicts an earlier message ends the session; the same again is fine.
            return if known == bytes { Ok(()) } else { Err(Error::Contradiction { culprit: from }) };
        }
        // §5.2: whatever fails a check names its sender.
        let package = self.plan.decode_package(bytes).map_err(blame(from))?;
        // §5.2: the proof that f(0) is known.
        self.plan.check_proof(from, package)?;
        self.packages.insert(from, bytes.to_vec());
        Ok(())
    }

    pub(super) fn receive_echo(&mut self, from: KgcId, bytes: &[u8]) -> Result<(), Error> {
        self.check_sender(from)?;
        let theirs: &Digest = bytes.try_into().map_err(|_| Error::InvalidMessage { culprit: from })?;
        // §5.2: all must have received the same commitments.
        if *theirs != self.echo() {
            return Err(Error::EchoMismatch { with: from });
        }
        self.echoes.insert(from);
        Ok(())
    }

    pub(super) fn receive_share(&mut self, from: KgcId, bytes: &[u8]) -> Result<(), Error> {
        self.check_sender(from)?;
        if let Some(known) = self.shares.get(&from) {
            // Shares are secret: compared in constant time.
            let same = ct_eq(known.expose(), bytes);
            return if same { Ok(()) } else { Err(Error::Contradiction { culprit: from }) };
        }
        let package = self.packages.get(&from).ok_or(Error::UnknownKgc(from))?;
        let share = Secret::try_from(bytes).map_err(|_| Error::InvalidMessage { culprit: from })?;
        // §5.2: f(i) is checked against the commitments.
        match self.plan.share_fits(package, bytes) {
            Some(true) => {
                self.shares.insert(from, share);
                Ok(())
            }
            Some(false) => Err(Error::InvalidShare { culprit: from }),
            None => Err(Error::InvalidMessage { culprit: from }),
        }
    }

    pub(super) fn missing_packages(&self) -> Vec<KgcId> {
        self.plan.parameters.missing(self.plan.kgc, |kgc| self.packages.contains_key(kgc))
    }

    pub(super) fn missing_echoes(&self) -> Vec<KgcId> {
        self.plan.parameters.missing(self.plan.kgc, |kgc| self.echoes.contains(kgc))
    }

    pub(super) fn missing_shares(&self) -> Vec<KgcId> {
        self.plan.parameters.missing(self.plan.kgc, |kgc| self.shares.contains_key(kgc))
    }

    /// A hash of what all must agree on before anybody hands out a share: the context, n and t, the quorum
    /// that is refreshed, and all packages in the order of their senders.
    pub(super) fn echo(&self) -> Digest {
        let CeremonyPlan { parameters, kgc, context, old, .. } = &self.plan;
        // §5.2: a hash of all commitments, under the context of the session.
        let hash = Hasher::new("quiver/1 quorum echo").lp(S::ID.as_bytes()).fixed(context);
        let hash = hash.u16(parameters.members()).u16(parameters.threshold());
        let hash = match old {
            None => hash.u8(0),
            Some(old) => hash.u8(1).fixed(&old.public.digest()),
        };
        let dealt = |from: &KgcId| match from == kgc {
            true => self.own.as_slice(),
            false => self.packages.get(from).map_or(&[][..], Vec::as_slice),
        };
        parameters.kgcs().fold(hash, |hash, from| hash.u16(from).lp(dealt(&from))).finish()
    }

    pub(super) fn deal(&self) -> Result<Dealt<S>, Error> {
        self.plan.part2(&self.packages)
    }

    pub(super) fn finish(&self, dealt: &Dealt<S>) -> Result<CeremonyOutcome<S>, Error> {
        self.plan.part3(dealt, &self.packages, &self.shares)
    }

    /// Number of bytes, at most: the buffer must not grow, because the old one is not erased.
    fn capacity(&self) -> usize {
        let n = usize::from(self.plan.parameters.members());
        let package = 6 + package_len::<S>(self.plan.parameters);
        let old = SecretShare::<S>::encoded_len() + PublicShares::<S>::encoded_len(self.plan.parameters);
        256 + S::ID.len() + old + n * (package + 2 + 2 + SCALAR_LEN)
    }

    pub(super) fn encode(&self, stage: DkgRound) -> Zeroizing<Vec<u8>> {
        let mut writer = Writer::with_capacity(self.capacity());
        writer.lp(KIND.as_bytes()).lp(S::ID.as_bytes()).u8(stage as u8);
        self.plan.parameters.write(&mut writer);
        writer.u16(self.plan.kgc).fixed(&self.plan.context).fixed(self.plan.seed.expose());
        match &self.plan.old {
            None => writer.u8(0),
            Some(old) => writer.u8(1).fixed(&old.share.encode()).fixed(&old.public.encode()),
        };
        writer.count(self.packages.len());
        for (kgc, package) in &self.packages {
            writer.u16(*kgc).lp(package);
        }
        writer.count(self.echoes.len());
        for kgc in &self.echoes {
            writer.u16(*kgc);
        }
        writer.count(self.shares.len());
        for (kgc, share) in &self.shares {
            writer.u16(*kgc).fixed(share.expose());
        }
        Zeroizing::new(writer.finish())
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<(DkgRound, Self), Error> {
        let mut reader = Reader::new(bytes);
        read_kind::<S>(&mut reader, KIND)?;
        let stage = match reader.u8()? {
            1 => DkgRound::Dealing,
            2 => DkgRound::Echoing,
            3 => DkgRound::Sharing,
            _ => return Err(Error::Malformed("no round of a ceremony")),
        };
        let mut record = Self::new(read_plan(&mut reader)?)?;
        record.read_messages(&mut reader)?;
        reader.end()?;
        // §5.2: a member that echoes has all commitments on its disk.
        let complete = match stage {
            DkgRound::Dealing => true,
            DkgRound::Echoing => record.missing_packages().is_empty(),
            DkgRound::Sharing => record.missing_packages().is_empty() && record.missing_echoes().is_empty(),
        };
        if complete { Ok((stage, record)) } else { Err(Error::Malformed("a round that was not over")) }
    }

    fn read_messages(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        let members = usize::from(self.plan.parameters.members());
        for _ in 0..reader.count(members, 6)? {
            let from = reader.u16()?;
            self.check_sender(from)?;
            let package = reader.lp(package_len::<S>(self.plan.parameters))?;
            // Its proof was checked when it came, and FROST checks it again in round 2.
            self.plan.decode_package(package)?;
            self.packages.insert(from, package.to_vec());
        }
        for _ in 0..reader.count(members, 2)? {
            let from = reader.u16()?;
            self.check_sender(from)?;
            self.echoes.insert(from);
        }
        for _ in 0..reader.count(members, 2 + SCALAR_LEN)? {
            let from = reader.u16()?;
            self.check_sender(from)?;
            self.shares.insert(from, Secret::new(reader.array()?));
        }
        Ok(())
    }
}

fn read_plan<S: QuorumSuite>(reader: &mut Reader<'_>) -> Result<CeremonyPlan<S>, Error> {
    let parameters = QuorumParameters::read(reader)?;
    let kgc = reader.u16()?;
    parameters.check(kgc)?;
    let context = reader.array()?;
    let seed = Secret::new(reader.array()?);
    let old = match reader.u8()? {
        0 => None,
        1 => Some(Old::new(SecretShare::read(reader)?, PublicShares::read(reader)?)?),
        _ => return Err(Error::Malformed("no kind of ceremony")),
    };
    if old.as_ref().is_some_and(|old| old.share.parameters() != parameters || old.share.kgc() != kgc) {
        return Err(Error::WrongQuorum);
    }
    Ok(CeremonyPlan { parameters, kgc, context, seed, old })
}
