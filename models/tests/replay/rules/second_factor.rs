//! The second factor of pairwise secrets (docs/protocol.md, §24): one exchange for a drone and a leader,
//! whose secret steps with the leader's terms.

use std::collections::{BTreeMap, BTreeSet};

use quiver_ainq::{DronePublicKey, Epoch, Header, HeaderCore, KemTerm, Suite};
use quiver_crypto::{Digest, Secret, extract};
use quiver_message::{JoinCiphertext, JoinRequest, KemOffer};

use super::{Rules, S, Values, Verdict, lp, require};
use crate::recording::{GROUP, Node};
use crate::table::Table;

/// κ[g] of a leader and a drone.
#[derive(Clone)]
pub(crate) struct Kappa {
    set: u8,
    pub(crate) g: u64,
    key: Secret<32>,
}

/// Inputs of a pair's W besides T, for an adversary that computes all T afterwards.
#[derive(Clone)]
pub(crate) struct Factor {
    pub(crate) leader: Node,
    pub(crate) kappa: Kappa,
    context: Digest,
    secret: Vec<u8>,
}

#[derive(Clone, Default)]
pub(super) struct SecondFactors {
    /// κ of a leader and a drone as the exchanges between them gave it.
    made: BTreeMap<(Node, Node), Vec<Kappa>>,
    /// Encapsulation keys by the drone and its nonce.
    offered: BTreeMap<(Node, Vec<u8>), Offered>,
    /// Newest term of each leader that anybody was sent a header of, and its g.
    counts: BTreeMap<Node, (u64, u64)>,
}

/// An encapsulation key, its set, and the leader that was asked.
#[derive(Clone)]
struct Offered {
    asked: Node,
    key: Vec<u8>,
    set: u8,
}

fn code(term: &KemTerm) -> u8 {
    term.set().code()
}

impl Kappa {
    /// κ in a later term of its leader.
    fn at(&self, table: &Table, leader: &DronePublicKey<S>, g: u64) -> Option<Self> {
        if g < self.g {
            return None;
        }
        let handle = leader.handle();
        let step = |key: Secret<32>, g: u64| {
            table.prf("kem_step", &key, &[("leader", handle.as_bytes()), ("g", &g.to_be_bytes())])
        };
        Some(Self { set: self.set, g, key: (self.g..g).fold(self.key.clone(), step) })
    }

    /// W[b] of T and κ.
    fn start(&self, table: &Table, context: &Digest, secret: &[u8]) -> Secret<32> {
        let values: Values<'_> =
            &[("ctx", context), ("parameters", &[self.set]), ("g", &self.g.to_be_bytes())];
        extract(&table.hash("kem_pair", values), &[lp(secret), lp(self.key.expose())].concat())
    }
}

impl Factor {
    pub(super) fn new(leader: Node, kappa: Kappa, context: Digest, secret: &[u8]) -> Self {
        Self { leader, kappa, context, secret: secret.to_vec() }
    }

    /// W[b] as whoever has T and this κ computes it, if it leads to the term of the pair.
    pub(crate) fn computed_with(
        &self,
        table: &Table,
        kappa: &Kappa,
        leader: &DronePublicKey<S>,
    ) -> Secret<32> {
        let stepped = kappa.at(table, leader, self.kappa.g).unwrap_or_else(|| kappa.clone());
        Kappa { g: self.kappa.g, ..stepped }.start(table, &self.context, &self.secret)
    }
}

impl Rules<'_> {
    /// Bytes that follow the spare point in a request's statement, if there is a second factor (§24.4, §24.5).
    pub(super) fn offer(&mut self, from: Node, to: Node, request: &JoinRequest) -> Verdict<Option<Vec<u8>>> {
        require(request.kem.is_some() == self.run.group.kem, "another setting of the second factor")?;
        match &request.kem {
            None => Ok(None),
            Some(KemOffer::Key { set, key } | KemOffer::Ahead { set, key }) => {
                let offered = Offered { asked: to, key: key.clone(), set: set.code() };
                self.factors.offered.insert((from, request.nonce.to_vec()), offered);
                let kind = if matches!(request.kem, Some(KemOffer::Ahead { .. })) { 3 } else { 1 };
                Ok(Some([vec![set.code(), kind], lp(key)].concat()))
            }
            Some(KemOffer::Held { term, tag }) => {
                let leader = self.keys.get(to).ok_or("nobody knows the leader's key")?;
                let known = self.factors.made.get(&(to, from)).into_iter().flatten();
                let named = known.filter_map(|kappa| kappa.at(self.table, leader, term.g())).any(|kappa| {
                    self.table.prf("kem_tag", &kappa.key, &[]).expose()[..16] == tag[..]
                        && kappa.set == code(term)
                });
                require(named, "names no secret of the two")?;
                Ok(Some([&[code(term), 2][..], &term.g().to_be_bytes(), tag].concat()))
            }
        }
    }

    /// §24.2: κ of an exchange, from the secret that the leader encapsulated.
    pub(super) fn ciphertext(&mut self, from: Node, to: Node, answer: &JoinCiphertext) -> Verdict {
        let offered = self.factors.offered.get(&(to, answer.nonce.to_vec()));
        let Offered { asked, key, set } = offered.ok_or("nobody offered a key")?;
        require(*asked == from && *set == code(&answer.term), "another leader, or another set")?;
        let count = self.factors.counts.get(from);
        // Of a term that it opened it may have sent no header yet.
        let fits = |(term, g): &(u64, u64)| {
            (*g..=g + self.terms_of(&self.run.opened, from, *term, u64::MAX)).contains(&answer.term.g())
        };
        require(count.is_none_or(fits), "not of its term")?;
        let shared = self.run.shared.get(&answer.ciphertext).ok_or("no ciphertext of its own")?;
        let exchange = self.table.hash("exchange", &[("ek", &lp(key)), ("ct", &lp(&answer.ciphertext))]);
        let (leader, drone) =
            self.keys.get(from).zip(self.keys.get(to)).ok_or("nobody knows the keys of the two")?;
        let (leader, drone) = (leader.handle(), drone.handle());
        let fingerprint = self.run.deployment.fingerprint();
        let values: Values<'_> = &[
            ("p_pub", &[lp(S::ID.as_bytes()), fingerprint.to_vec()].concat()),
            ("group", &lp(GROUP.as_bytes())),
            ("leader", leader.as_bytes()),
            ("drone", drone.as_bytes()),
            ("parameters", &[*set]),
            ("exchange", &exchange),
        ];
        let kappa =
            Kappa { set: *set, g: answer.term.g(), key: extract(&self.table.hash("kem", values), shared) };
        self.factors.made.entry((from, to)).or_default().push(kappa);
        Ok(())
    }

    /// §24.3: every header names set and g, which rises by one with each term of the leader.
    pub(super) fn counts(&mut self, header: &Header<S>) -> Verdict {
        let core = &header.core;
        require(core.kem.is_some() == self.run.group.kem, "another setting of the second factor")?;
        let leader = self.run.group.opener(core.epoch).ok_or("another ordinal")?;
        let Some(term) = &core.kem else { return Ok(()) };
        // A term that opens with nobody is sent to nobody.
        let newest = (core.epoch.term, term.g());
        let Some((former, before)) = self.factors.counts.insert(leader, newest) else { return Ok(()) };
        let opened = u64::from(former < core.epoch.term);
        let silent = self.terms_of(&self.run.silent, leader, former, core.epoch.term);
        require(term.g() == before + opened + silent, "a count that does not follow")
    }

    /// Number of terms between these two that a leader opened with one of these epochs.
    fn terms_of(&self, epochs: &BTreeSet<Epoch>, leader: Node, after: u64, before: u64) -> u64 {
        let between = |epoch: &&Epoch| {
            let opens = epoch.counter == 1 && self.run.group.opener(**epoch) == Some(leader);
            opens && (after + 1..before).contains(&epoch.term)
        };
        epochs.iter().filter(between).count() as u64
    }

    /// W[b] of a pair whose secret and context these are: one for each κ that the two have.
    pub(super) fn starts(
        &self,
        to: Node,
        core: &HeaderCore<S>,
        context: &Digest,
        secret: &[u8],
    ) -> Vec<(Secret<32>, Option<Factor>)> {
        let Some(term) = &core.kem else { return vec![(extract(context, secret), None)] };
        let Some(leader) = self.run.group.opener(core.epoch) else { return Vec::new() };
        let Some(key) = self.keys.get(leader) else { return Vec::new() };
        let made = self.factors.made.get(&(leader, to)).into_iter().flatten();
        let stepped = made.filter_map(|kappa| kappa.at(self.table, key, term.g()));
        let of_set = stepped.filter(|kappa| kappa.set == code(term));
        of_set
            .map(|kappa| {
                let w = kappa.start(self.table, context, secret);
                (w, Some(Factor::new(leader, kappa, *context, secret)))
            })
            .collect()
    }
}
