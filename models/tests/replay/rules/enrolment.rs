//! Enrolments, with one KGC and with a quorum (docs/protocol.md, §3).
//!
//! Messages that a KGC seals are opened by the products of scalars and points that the suite computed; so it
//! is known which partial key a drone was given, and that its key is that one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use quiver_ainq::{DronePublicKey, EnrolmentRequest, KgcId, QuorumStatement, Suite};
use quiver_crypto::{Digest, aead, extract};
use quiver_enrolment::threshold::{EnrolCommitment, EnrolDone, EnrolShare, EnrolSigning, EnrolmentMessage};
use quiver_message::{EnrolReply, EnrolRequest};
use quiver_quorum::PublicShares;

use super::{Rules, S, Values, Verdict, bad, lp, remembered, require};
use crate::recording::{Group, Node};

/// Plaintexts that were opened once, by salt and ciphertext: a test checks the same run hundreds of times.
static OPENED: Mutex<BTreeMap<Vec<u8>, Option<Vec<u8>>>> = Mutex::new(BTreeMap::new());

#[derive(Clone, Default)]
pub(super) struct Enrolments {
    asking: BTreeMap<Digest, (Node, EnrolmentRequest<S>)>,
    /// KGCs that were asked, by the request.
    asked: BTreeSet<(Node, Digest)>,
    /// Commitments of KGCs, with the request and the version of their shares.
    commitments: BTreeMap<(KgcId, Vec<u8>), (Digest, u32)>,
    /// Requests of packages, and who was asked for a share of which.
    packages: BTreeMap<Digest, Digest>,
    signing: BTreeSet<(Node, Digest)>,
    /// Shares by package and KGC.
    shares: BTreeMap<Digest, BTreeMap<KgcId, Share>>,
    partial: BTreeMap<Node, Vec<PartialKey>>,
}

/// A share as it was sealed to the drone, and its scalar.
#[derive(Clone)]
struct Share {
    sealed: Vec<u8>,
    scalar: Vec<u8>,
}

/// s, and R as far as a KGC says it.
#[derive(Clone)]
struct PartialKey {
    s: Vec<u8>,
    r: Option<Vec<u8>>,
}

/// Number of a KGC.
fn id_of(group: &Group, node: Node) -> KgcId {
    group.kgcs.iter().position(|kgc| *kgc == node).map_or(1, |place| place as KgcId + 1)
}

/// lp(suite), in front of what is hashed.
fn with_suite(bytes: &[u8]) -> Vec<u8> {
    [lp(S::ID.as_bytes()), bytes.to_vec()].concat()
}

fn point(bytes: &[u8]) -> Verdict<<S as Suite>::Point> {
    S::decode(bytes).ok_or_else(|| "no point".to_string())
}

/// Returns true if z·P = K + c·X.
fn holds(z: &[u8], commitment: &[u8], c: &<S as Suite>::Scalar, key: &[u8]) -> Verdict<bool> {
    let z = S::scalar_decode(z).ok_or("no scalar")?;
    let sum = S::vartime_multiscalar(&[*c, S::scalar_from_u128(1)], &[point(key)?, point(commitment)?]);
    Ok(S::mul_base(&z) == sum)
}

impl Rules<'_> {
    /// §3.3: under the cookie of this KGC, addressed to it, with proofs under tsk and x_i over all of it.
    pub(super) fn enrol_request(&mut self, from: Node, to: Node, request: &EnrolRequest) -> Verdict {
        let cookie = self.cookies.get(&request.cookie[..]);
        require(cookie == Some(&(from, request.nonce.to_vec())), "not its cookie")?;
        let decoded = EnrolmentRequest::<S>::decode(&request.request).map_err(bad)?;
        require(decoded.kgcs().contains(&id_of(&self.run.group, to)), "not addressed to this KGC")?;
        require(
            decoded.statement().identity().name.as_bytes() == self.run.group.name_of(from).as_bytes(),
            "another's token",
        )?;
        let (signed, proofs) =
            request.request.split_at_checked(request.request.len() - 128).ok_or("no proofs")?;
        let length = signed.first_chunk().map_or(0, |length| u32::from_be_bytes(*length)) as usize;
        let (statement, rest) = signed[4..].split_at_checked(length).ok_or("no statement")?;
        let asked = rest.get(64..).ok_or("no signature of an operator")?;
        let transcript = [lp(statement), asked.to_vec()].concat();
        let keys = [&statement[length - 32..], &asked[..32]];
        for ((name, key), proof) in ["token_key", "secret_value"].iter().zip(keys).zip(proofs.chunks(64)) {
            let (label, transcript) = self.table.labelled("proof", name, &[("transcript", &transcript)]);
            let (commitment, z) = proof.split_at(32);
            let all = [label.as_bytes(), key, proof, &transcript].concat();
            let c = || S::hash_to_scalar(&label, &[S::ID.as_bytes(), key, commitment, &transcript]);
            let proven = remembered(all, || holds(z, commitment, &c(), key) == Ok(true));
            require(proven, "a proof that does not hold")?;
        }
        let digest = decoded.digest();
        self.enrolments.asking.insert(digest, (from, decoded));
        self.enrolments.asked.insert((to, digest));
        Ok(())
    }

    /// The request that a KGC answers to a drone.
    fn asked_of(&self, kgc: Node, drone: Node, digest: &Digest) -> Verdict<&EnrolmentRequest<S>> {
        let (asking, request) = self.enrolments.asking.get(digest).ok_or("nobody asked for that")?;
        require(*asking == drone, "another's request")?;
        require(self.enrolments.asked.contains(&(kgc, *digest)), "it was not asked")?;
        Ok(request)
    }

    /// §3.5: sealed under what the KGC and the drone compute of A, P_i and N_i.
    fn unsealed(&self, salt: &Digest, ciphertext: &[u8]) -> Verdict<Vec<u8>> {
        let opened = || OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        let name = [&salt[..], ciphertext].concat();
        if let Some(known) = opened().get(&name) {
            return known.clone().ok_or_else(|| "sealed under no key of theirs".to_string());
        }
        let text = self.run.products.windows(2).find_map(|pair| {
            let key = extract(salt, &pair.concat());
            aead::open(&key, &[0; 12], &[], ciphertext).ok().map(|text| text.to_vec())
        });
        opened().insert(name, text.clone());
        text.ok_or_else(|| "sealed under no key of theirs".to_string())
    }

    pub(super) fn enrol_reply(&mut self, from: Node, to: Node, reply: &EnrolReply) -> Verdict {
        self.asked_of(from, to, &reply.request_digest)?;
        let (kgc, rest) = reply.reply.split_first_chunk::<2>().ok_or("no reply")?;
        require(KgcId::from_be_bytes(*kgc) == id_of(&self.run.group, from), "another KGC's")?;
        let (a, ciphertext) = rest.split_at_checked(32).ok_or("no A")?;
        let values: Values<'_> = &[("request", &with_suite(&reply.request_digest)), ("kgc", kgc), ("a", a)];
        let text = self.unsealed(&self.table.hash("reply", values), ciphertext)?;
        let (s, r) = text.split_at_checked(32).ok_or("no partial key")?;
        self.enrolments
            .partial
            .entry(to)
            .or_default()
            .push(PartialKey { s: s.to_vec(), r: Some(r.to_vec()) });
        self.issued.insert(to);
        Ok(())
    }

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
        let known = self.enrolments.commitments.insert((made.kgc, made.commitment.clone()), of);
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
            let known = self.enrolments.commitments.get(&(*kgc, commitment.clone()));
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
        self.enrolments.packages.insert(package, asked.request_digest);
        self.enrolments.signing.insert((to, package));
        Ok(())
    }

    /// §3.7: a share for this package, sealed to the drone.
    fn enrol_share(&mut self, from: Node, to: Node, share: &EnrolShare) -> Verdict {
        let package = share.package_digest;
        require(self.enrolments.signing.contains(&(from, package)), "it was not asked for that package")?;
        let digest = self.enrolments.packages[&package];
        self.asked_of(from, to, &digest)?;
        let (kgc, rest) = share.share.split_first_chunk::<2>().ok_or("no share")?;
        require(KgcId::from_be_bytes(*kgc) == id_of(&self.run.group, from), "another KGC's")?;
        let (a, ciphertext) = rest.split_at_checked(32).ok_or("no A")?;
        let values: Values<'_> =
            &[("request", &with_suite(&digest)), ("kgc", kgc), ("package", &package), ("a", a)];
        let text = self.unsealed(&self.table.hash("share", values), ciphertext)?;
        let shares = self.enrolments.shares.entry(package).or_default();
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
        for (package, given) in &self.enrolments.shares {
            let of =
                self.enrolments.packages.get(package).and_then(|digest| self.enrolments.asking.get(digest));
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

    /// §2.3: what a KGC says of an identity and P_i.
    fn identity(&self, identity: &[u8], p: &[u8]) -> Vec<u8> {
        let (purpose, body) = self.table.labelled("kgc", "identity", &[("drone", &lp(identity)), ("p", p)]);
        let head = [lp(S::ID.as_bytes()), lp(self.run.deployment.name().as_bytes()), lp(purpose.as_bytes())];
        [head.concat(), body].concat()
    }

    /// §2.3: the key is one that a KGC issued to this drone: s·P = R + H0·P_pub.
    pub(super) fn issued_key(&self, of: Node, key: &DronePublicKey<S>) -> Verdict {
        let partial = self.enrolments.partial.get(of).ok_or("nobody issued it a key")?;
        require(partial.iter().any(|partial| self.fits(partial, key)), "a key that no KGC issued to it")
    }

    /// Returns true if s·P = R + H0·P_pub.
    fn fits(&self, PartialKey { s, r: said }: &PartialKey, key: &DronePublicKey<S>) -> bool {
        let bytes = key.encode();
        let (identity, points) = bytes.split_at(bytes.len() - 64);
        let (r, p) = points.split_at(32);
        let message = self.identity(&identity[4..], p);
        let master = self.run.deployment.master().as_bytes();
        let c = || S::challenge(&[r, master, &message]);
        let all = [b"partial", &s[..], r, master, &message].concat();
        said.as_ref().is_none_or(|said| said == r)
            && remembered(all, || holds(s, r, &c(), master) == Ok(true))
    }
}
