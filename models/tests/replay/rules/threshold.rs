//! Enrolments with a quorum of KGCs (docs/protocol.md, §3.6 and §3.7).

use std::collections::{BTreeMap, BTreeSet};

use quiver_ainq::{KgcId, QuorumStatement, Suite};
use quiver_crypto::Digest;
use quiver_enrolment::threshold::{EnrolCommitment, EnrolDone, EnrolShare, EnrolSigning, EnrolmentMessage};
use quiver_quorum::PublicShares;

use super::enrolment::{PartialKey, id_of, with_suite};
use super::{Rules, S, Values, Verdict, bad, lp, remembered, require};
use crate::recording::Node;

/// Contributions of a quorum's KGCs to keys of drones.
#[derive(Clone, Default)]
pub(super) struct QuorumEnrolments {
    /// Commitments of KGCs, with the request and the version of their shares.
    commitments: BTreeMap<(KgcId, Vec<u8>), (Digest, u32)>,
    /// Requests of packages, and who was asked for a share of which.
    packages: BTreeMap<Digest, Digest>,
    signing: BTreeSet<(Node, Digest)>,
    /// Shares by package and KGC.
    shares: BTreeMap<Digest, BTreeMap<KgcId, Share>>,
}

/// A share as it was sealed to the drone, and its scalar.
#[derive(Clone)]
struct Share {
    sealed: Vec<u8>,
    scalar: Vec<u8>,
}

impl Rules<'_> {
    /// A message between a drone and a KGC of a quorum.
    pub(super) fn enrolment_with_a_quorum(
        &mut self,
        from: Node,
        to: Node,
        message: &EnrolmentMessage,
    ) -> Verdict {
        match message {
            EnrolmentMessage::Commitment(made) => self.enrol_commitment(from, to, made),
            EnrolmentMessage::Signing(asked) => self.enrol_signing(from, to, asked),
            EnrolmentMessage::Share(share) => self.enrol_share(from, to, share),
            EnrolmentMessage::Done(done) => self.enrol_done(from, done),
        }
    }

    /// §3.7: a commitment for this request, under the quorum's own statement.
    fn enrol_commitment(&mut self, from: Node, to: Node, made: &EnrolCommitment) -> Verdict {
        self.asked_of(from, to, &made.request_digest)?;
        require(made.kgc == id_of(&self.run.group, from), "another KGC's")?;
        let statement = QuorumStatement::<S>::decode(&made.statement).map_err(bad)?;
        let deployment = &self.run.deployment;
        let all = [b"quorum", deployment.master().as_bytes(), &made.statement].concat();
        let signed = remembered(all, || statement.verify(deployment).is_ok());
        require(signed, "a statement that the quorum did not sign")?;
        // lp(shares) ‖ signature.
        let (length, rest) = made.statement.split_first_chunk().ok_or("no statement")?;
        let shares = rest.get(..u32::from_be_bytes(*length) as usize).ok_or("no shares")?;
        let shares = PublicShares::<S>::decode(shares).map_err(bad)?;
        require(
            usize::from(shares.parameters().threshold()) == self.run.group.threshold,
            "another threshold",
        )?;
        let of = (made.request_digest, shares.version());
        let known = self.quorum.commitments.insert((made.kgc, made.commitment.clone()), of);
        require(known.is_none_or(|known| known == of), "a commitment that it gave to another request")
    }

    /// §3.6: a package of commitments that this drone was given, as many as have to sign.
    fn enrol_signing(&mut self, from: Node, to: Node, asked: &EnrolSigning) -> Verdict {
        let request = self.asked_of(to, from, &asked.request_digest)?;
        require(asked.parts.len() == self.run.group.threshold, "another number of KGCs")?;
        require(
            asked.parts.iter().any(|(kgc, _)| *kgc == id_of(&self.run.group, to)),
            "a package without it",
        )?;
        let (mut versions, mut parts) = (BTreeSet::new(), (asked.parts.len() as u32).to_be_bytes().to_vec());
        for (kgc, commitment) in &asked.parts {
            let known = self.quorum.commitments.get(&(*kgc, commitment.clone()));
            let (of, version) = known.ok_or("a commitment that nobody made")?;
            require(*of == asked.request_digest, "a commitment to another request")?;
            versions.insert(*version);
            parts.extend([&kgc.to_be_bytes()[..], commitment].concat());
        }
        let [version] = versions.iter().collect::<Vec<_>>()[..] else {
            return Err("commitments under two versions".to_string());
        };
        let message =
            self.identity(&request.statement().identity().encode(), request.public_value().as_bytes());
        let values: Values<'_> = &[
            ("version", &with_suite(&version.to_be_bytes())),
            ("message", &lp(&message)),
            ("parts", &parts),
        ];
        let package = self.table.hash("package", values);
        self.quorum.packages.insert(package, asked.request_digest);
        self.quorum.signing.insert((to, package));
        Ok(())
    }

    /// §3.7: a share for this package, sealed to the drone.
    fn enrol_share(&mut self, from: Node, to: Node, share: &EnrolShare) -> Verdict {
        let package = share.package_digest;
        require(self.quorum.signing.contains(&(from, package)), "it was not asked for that package")?;
        let digest = self.quorum.packages[&package];
        self.asked_of(from, to, &digest)?;
        let (kgc, rest) = share.share.split_first_chunk::<2>().ok_or("no share")?;
        require(KgcId::from_be_bytes(*kgc) == id_of(&self.run.group, from), "another KGC's")?;
        let (a, ciphertext) = rest.split_at_checked(32).ok_or("no A")?;
        let values: Values<'_> =
            &[("request", &with_suite(&digest)), ("kgc", kgc), ("package", &package), ("a", a)];
        let text = self.unsealed(&self.table.hash("share", values), ciphertext)?;
        let shares = self.quorum.shares.entry(package).or_default();
        shares.insert(id_of(&self.run.group, from), Share { sealed: share.share.clone(), scalar: text });
        if shares.len() == self.run.group.threshold {
            let parts = shares.values().map(|share| S::scalar_decode(&share.scalar).ok_or("no scalar"));
            let zero = S::scalar_from_u128(0);
            let sum = parts.collect::<Result<Vec<_>, _>>()?.into_iter().fold(zero, |sum, part| sum + part);
            let s = S::scalar_encode(&sum).to_vec();
            self.enrolments.partial.entry(to).or_default().push(PartialKey { s, r: None });
            self.issued.insert(to);
        }
        Ok(())
    }

    /// Number of packages of which a share is among these, and of those whose sum is the key of their drone all the same.
    pub(crate) fn keys_of(&self, shares: &BTreeSet<Vec<u8>>) -> (usize, usize) {
        let (mut all, mut fit) = (0, 0);
        for (package, given) in &self.quorum.shares {
            let of = self.quorum.packages.get(package).and_then(|digest| self.enrolments.asking.get(digest));
            let Some(key) = of.and_then(|(node, _)| self.keys.get(node)) else { continue };
            let complete = given.len() == self.run.group.threshold;
            if !complete || !given.values().any(|share| shares.contains(&share.sealed)) {
                continue;
            }
            let sum = given.values().filter_map(|share| S::scalar_decode(&share.scalar));
            let sum = sum.fold(S::scalar_from_u128(0), |sum, part| sum + part);
            let partial = PartialKey { s: S::scalar_encode(&sum).to_vec(), r: None };
            all += 1;
            fit += usize::from(self.fits(&partial, key));
        }
        (all, fit)
    }

    /// §3.9: who says that it holds a key holds it.
    fn enrol_done(&mut self, from: Node, done: &EnrolDone) -> Verdict {
        require(self.enrolled.contains(from), "it has no key yet")?;
        let (drone, signature) = done.decode::<S>().map_err(bad)?;
        self.key(from, &drone)?;
        let (label, statement) = self.table.statement("enrolled", &[("serial", &drone.identity.serial)]);
        self.verify(&signature, &drone, label, &statement)
    }
}
