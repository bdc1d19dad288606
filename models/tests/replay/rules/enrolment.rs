//! Enrolments with one KGC, and the steps that those with a quorum share (docs/protocol.md, §3).
//!
//! Messages that a KGC seals are opened by the products of scalars and points that the suite computed; so it
//! is known which partial key a drone was given, and that its key is that one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use quiver_ainq::{DronePublicKey, EnrolmentRequest, KgcId, Suite};
use quiver_crypto::{Digest, aead, extract};
use quiver_message::{EnrolReply, EnrolRequest};

use super::{Rules, S, Values, Verdict, bad, lp, remembered, require};
use crate::recording::{Group, Node};

/// Plaintexts that were opened once, by salt and ciphertext: a test checks the same run hundreds of times.
static OPENED: Mutex<BTreeMap<Vec<u8>, Option<Vec<u8>>>> = Mutex::new(BTreeMap::new());

#[derive(Clone, Default)]
pub(super) struct Enrolments {
    pub(super) asking: BTreeMap<Digest, (Node, EnrolmentRequest<S>)>,
    /// KGCs that were asked, by the request.
    asked: BTreeSet<(Node, Digest)>,
    pub(super) partial: BTreeMap<Node, Vec<PartialKey>>,
}

/// s, and R as far as a KGC says it.
#[derive(Clone)]
pub(super) struct PartialKey {
    pub(super) s: Vec<u8>,
    pub(super) r: Option<Vec<u8>>,
}

/// Number of a KGC.
pub(super) fn id_of(group: &Group, node: Node) -> KgcId {
    group.kgcs.iter().position(|kgc| *kgc == node).map_or(1, |place| place as KgcId + 1)
}

/// lp(suite), in front of what is hashed.
pub(super) fn with_suite(bytes: &[u8]) -> Vec<u8> {
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
    pub(super) fn asked_of(&self, kgc: Node, drone: Node, digest: &Digest) -> Verdict<&EnrolmentRequest<S>> {
        let (asking, request) = self.enrolments.asking.get(digest).ok_or("nobody asked for that")?;
        require(*asking == drone, "another's request")?;
        require(self.enrolments.asked.contains(&(kgc, *digest)), "it was not asked")?;
        Ok(request)
    }

    /// §3.5: sealed under what the KGC and the drone compute of A, P_i and N_i.
    pub(super) fn unsealed(&self, salt: &Digest, ciphertext: &[u8]) -> Verdict<Vec<u8>> {
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

    /// §2.3: what a KGC says of an identity and P_i.
    pub(super) fn identity(&self, identity: &[u8], p: &[u8]) -> Vec<u8> {
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
    pub(super) fn fits(&self, PartialKey { s, r: said }: &PartialKey, key: &DronePublicKey<S>) -> bool {
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
