//! Admission without a name (docs/admission.md, A4, A5). From what drone and leader agreed on by A_C and A_S,
//! and nothing else, every commitment, confirmation and secret of a run is derived over all bytes of its steps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use quiver_abke::exchange::PolicyCircuit;
pub(crate) use quiver_admission::AdmissionMessage;
use quiver_admission::{
    AdmissionChallenge, AdmissionLeave, AdmissionProof, AdmissionStep, PolicyStatement, SignedPolicy,
};
use quiver_ainq::{Name, Signature, Suite};
use quiver_crypto::canonical::Reader;
use quiver_crypto::{Digest, Secret, extract};

use super::{Rules, S, Values, Verdict, bad, lp, require};
use crate::recording::{GROUP, Node};
use crate::table::Table;

/// Name of the exchange, in the place of the suite.
const EXCHANGE: &str = "QUIVER-ABKE-v1";
/// Cryptography of the exchange, as its context names it.
const CRYPTOGRAPHY: &str = "BLS12-381, ristretto255, privacy-free half gates over AES-128, SHA-256";

/// Kinds of the exchange's messages, in their first byte.
const HELLO: u8 = 1;
const OFFER: u8 = 2;
const COMMITMENT: u8 = 3;
const SEEDS: u8 = 4;
const OPENING: u8 = 5;
const CONFIRMATION: u8 = 6;

/// A policy as a leader demands it.
#[derive(Clone)]
struct Demanded {
    leader: Node,
    id: Digest,
    circuit: Arc<PolicyCircuit>,
}

/// A leader's offer.
#[derive(Clone)]
struct Offered {
    ctx: Digest,
    a_s: Vec<u8>,
    digest: Digest,
    /// Fingerprint of the slot keys over which the leader garbled.
    slots: [u8; 32],
}

/// A run so far.
#[derive(Clone)]
struct Run {
    demanded: Demanded,
    /// nonce ‖ c.
    channel: Vec<u8>,
    hello: Vec<u8>,
    offered: Option<Offered>,
    tables: Vec<u8>,
    committed: Option<Vec<u8>>,
    seeds: Option<Vec<u8>>,
    agreed: Option<Agreed>,
    confirmed: bool,
}

/// Values that follow from a run's transcript and what A_C and A_S give.
#[derive(Clone)]
struct Agreed {
    server: Secret<32>,
    pseudonym: Vec<u8>,
    pairwise: Secret<32>,
}

/// Result of a run by which a drone without a name was admitted.
#[derive(Clone)]
pub(super) struct Session {
    pub(super) node: Node,
    pub(super) pseudonym: Vec<u8>,
    pub(super) secret: Secret<32>,
    pub(super) slots: [u8; 32],
}

#[derive(Clone, Default)]
pub(super) struct Admissions {
    /// Demands that were sent with a cookie.
    demands: BTreeMap<Vec<u8>, Demanded>,
    runs: BTreeMap<(Node, Vec<u8>), Run>,
    /// First steps: each has a fresh key.
    shown: BTreeSet<Vec<u8>>,
    pub(super) sessions: Vec<Session>,
}

/// The bytes of a step behind its kind.
fn body(kind: u8, step: &[u8]) -> Verdict<&[u8]> {
    match step.split_first() {
        Some((first, body)) if *first == kind => Ok(body),
        _ => Err("a step of another kind".to_string()),
    }
}

/// The same of a step that has so many.
fn fixed(kind: u8, step: &[u8], length: usize) -> Verdict<&[u8]> {
    body(kind, step).and_then(|body| {
        require(body.len() == length, "a step of another length")?;
        Ok(body)
    })
}

/// A hash of the exchange.
fn hash(table: &Table, name: &str, kind: &str, values: &[(&str, &[u8])]) -> Digest {
    let kind = lp(kind.as_bytes());
    let values: Vec<_> = [("kind", &kind[..])].into_iter().chain(values.iter().copied()).collect();
    table.hash(name, &values)
}

impl Rules<'_> {
    /// A message between a leader and a drone without a name.
    pub(super) fn admission(&mut self, from: Node, to: Node, message: &AdmissionMessage<S>) -> Verdict {
        match message {
            AdmissionMessage::Hello(hello) => {
                require(hello.group.as_bytes() == GROUP.as_bytes(), "another group")?;
                self.fresh(from, &hello.nonce)
            }
            AdmissionMessage::Challenge(challenge) => self.admission_challenge(from, to, challenge),
            AdmissionMessage::Proof(proof) => self.admission_proof(from, to, proof),
            AdmissionMessage::Step(step) => self.admission_step(from, to, step),
            AdmissionMessage::Leave(leave) => self.admission_leave(from, leave),
        }
    }

    /// §A4.2: what a leader of the group demands.
    fn admission_challenge(&mut self, from: Node, to: Node, challenge: &AdmissionChallenge<S>) -> Verdict {
        require(self.enrolled.contains(from), "it has no key yet")?;
        self.key(from, &challenge.leader)?;
        let demanded = self.demanded(from, challenge)?;
        self.admissions.demands.insert(challenge.cookie.to_vec(), demanded);
        self.cookie(to, &challenge.nonce, &challenge.cookie)
    }

    /// What a leader demands under its signature is a policy that the KGC signed for this group.
    fn demanded(&self, leader: Node, challenge: &AdmissionChallenge<S>) -> Verdict<Demanded> {
        let values: Values<'_> = &[("group", &lp(GROUP.as_bytes())), ("policy", &lp(&challenge.policy))];
        let (label, statement) = self.table.statement("admission", values);
        self.verify(&challenge.signature, &challenge.leader, label, &statement)?;
        // lp(body) ‖ signature.
        let (length, rest) = challenge.policy.split_first_chunk().ok_or("no policy")?;
        let body = rest.get(..u32::from_be_bytes(*length) as usize).ok_or("no body")?;
        // §A3: the id, and the circuit that the text and the authority's fields give.
        let p_pub = [lp(S::ID.as_bytes()), self.run.deployment.master().as_bytes().to_vec()].concat();
        let id = self.table.hash("policy", &[("p_pub", &p_pub), ("body", &lp(body))]);
        Ok(Demanded { leader, id, circuit: self.circuit(&challenge.policy, body)? })
    }

    /// The circuit of a policy that the KGC signed for this group. It is remembered, because to compile it takes long.
    fn circuit(&self, policy: &[u8], body: &[u8]) -> Verdict<Arc<PolicyCircuit>> {
        static CIRCUITS: Mutex<BTreeMap<Vec<u8>, Arc<PolicyCircuit>>> = Mutex::new(BTreeMap::new());
        let deployment = &self.run.deployment;
        let all = [deployment.master().as_bytes(), policy].concat();
        let mut circuits = CIRCUITS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = circuits.get(&all) {
            return Ok(Arc::clone(known));
        }
        let statement = PolicyStatement::decode(body).map_err(bad)?;
        require(statement.group.as_bytes() == GROUP.as_bytes(), "a policy for another group")?;
        let policy = SignedPolicy::<S>::decode(policy).map_err(bad)?;
        let verified = policy.verify(deployment).map_err(|_| "a policy that the KGC did not sign")?;
        let certification = self.run.certification.as_ref().ok_or("no authority certifies fields")?;
        let group = Name::new(GROUP).map_err(bad)?;
        let circuit = verified.exchangeable(&group, &certification.authority, 0).map_err(bad)?;
        circuits.insert(all, Arc::clone(&circuit));
        Ok(circuit)
    }

    /// A hello of the adversary is answered; a challenge of it is taken if a leader signed what it demands, because
    /// nothing binds nonce and cookie.
    pub(super) fn injected_admission(&mut self, to: Node, message: &AdmissionMessage<S>) {
        match message {
            AdmissionMessage::Hello(hello) => {
                self.injected.insert(hello.nonce.to_vec());
            }
            AdmissionMessage::Challenge(challenge) => {
                let leader = self.keys.iter().find(|(_, key)| key.encode() == challenge.leader.encode());
                let Some((leader, _)) = leader else { return };
                if let Ok(demanded) = self.demanded(leader, challenge) {
                    self.admissions.demands.insert(challenge.cookie.to_vec(), demanded);
                    self.cookies.insert(challenge.cookie.to_vec(), (to, challenge.nonce.to_vec()));
                }
            }
            _ => {}
        }
    }

    /// §A4.1: a cookie is good for one run, which begins with a key that no other has.
    fn admission_proof(&mut self, from: Node, to: Node, proof: &AdmissionProof) -> Verdict {
        let cookie = self.cookies.remove(&proof.cookie[..]);
        require(cookie == Some((from, proof.nonce.to_vec())), "not its cookie, or one that was taken")?;
        require(self.admissions.shown.insert(proof.step.clone()), "a key that was shown before")?;
        let demanded = self.admissions.demands.get(&proof.cookie[..]).ok_or("nobody demanded anything")?;
        require(demanded.leader == to, "not the leader that demanded it")?;
        require(body(HELLO, &proof.step)?.len() > 32, "no A_C and key")?;
        let run = Run {
            demanded: demanded.clone(),
            channel: [&proof.nonce[..], &proof.cookie].concat(),
            hello: proof.step.clone(),
            offered: None,
            tables: Vec::new(),
            committed: None,
            seeds: None,
            agreed: None,
            confirmed: false,
        };
        self.admissions.runs.insert((from, proof.nonce.to_vec()), run);
        Ok(())
    }

    /// §A4.1: offer and tables, commitment, seeds, opening, confirmation.
    fn admission_step(&mut self, from: Node, to: Node, message: &AdmissionStep) -> Verdict {
        let leads = self.run.group.leads(from);
        let name = (if leads { to } else { from }, message.nonce.to_vec());
        let mut run = self.admissions.runs.remove(&name).ok_or("no such run")?;
        require((if leads { from } else { to }) == run.demanded.leader, "not the leader of the run")?;
        require(message.ciphertext.is_empty(), "a second factor that the run does not have")?;
        let step = &message.step[..];
        match (leads, &run) {
            (true, Run { offered: None, .. }) => run.offered = Some(self.offer_of_run(&run, step)?),
            (true, Run { committed: None, .. }) => {
                run.tables.extend(step);
                let most = run.demanded.circuit.tables_len();
                require(!step.is_empty() && run.tables.len() <= most, "not the tables of the circuit")?;
            }
            (true, Run { seeds: None, .. }) => run.seeds = Some(fixed(SEEDS, step, 64)?.to_vec()),
            (true, Run { agreed: Some(agreed), confirmed: false, .. }) => {
                let confirmation = fixed(CONFIRMATION, step, 32)?;
                require(confirmation == agreed.server.expose(), "another confirmation of the leader")?;
                let Agreed { pseudonym, pairwise: secret, .. } = agreed.clone();
                let slots = run.offered.as_ref().ok_or("no offer")?.slots;
                self.admissions.sessions.push(Session { node: to, pseudonym, secret, slots });
                run.confirmed = true;
                // The welcome that is due answers the run.
                self.asked.insert(name.clone(), Vec::new());
                self.waiting.insert(name.clone());
            }
            (false, Run { offered: Some(_), committed: None, .. }) if step.is_empty() => {}
            (false, Run { offered: Some(_), committed: None, .. }) => {
                let whole = run.tables.len() == run.demanded.circuit.tables_len();
                require(whole, "a commitment before all tables were there")?;
                run.committed = Some(fixed(COMMITMENT, step, 32)?.to_vec());
            }
            (false, Run { seeds: Some(_), agreed: None, .. }) => {
                run.agreed = Some(self.agreement(&run, step)?);
            }
            _ => return Err("a step out of turn".to_string()),
        }
        self.admissions.runs.insert(name, run);
        Ok(())
    }

    /// §A4.2: the leader signs the context of the run, which names its period's slot keys.
    fn offer_of_run(&self, run: &Run, offer: &[u8]) -> Verdict<Offered> {
        let mut reader = Reader::new(body(OFFER, offer)?);
        let cut = |_| "an offer cut short".to_string();
        let (a_s, nonce) = (reader.take(32).map_err(cut)?.to_vec(), reader.take(32).map_err(cut)?.to_vec());
        let signature = Signature::decode(reader.lp(256).map_err(cut)?).map_err(bad)?;
        let certification = self.run.certification.as_ref().ok_or("no authority certifies fields")?;
        let leader = self.keys.get(run.demanded.leader).ok_or("nobody knows the leader's key")?;
        let (a_c, key) = run.hello[1..].split_at(32);
        let key = hash(self.table, "exchange_key", "public key", &[("key", &lp(key))]);
        let signed = certification.slots.iter().find_map(|slots| {
            let ctx = hash(
                self.table,
                "exchange_context",
                "context",
                &[
                    ("cryptography", &lp(CRYPTOGRAPHY.as_bytes())),
                    ("policy", &run.demanded.id),
                    ("circuit", &run.demanded.circuit.digest()),
                    ("slots", slots),
                    ("leader", &lp(&leader.encode())),
                    ("channel", &lp(&run.channel)),
                    ("key", &key),
                    ("a_c", a_c),
                    ("a_s", &a_s),
                    ("nonce", &nonce),
                ],
            );
            let (label, statement) = self.table.statement("exchange", &[("ctx", &ctx)]);
            self.verify(&signature, leader, label, &statement).is_ok().then_some((ctx, *slots))
        });
        let (ctx, slots) = signed.ok_or("an offer that the leader did not sign for this run")?;
        let digest = hash(self.table, "exchange_offer", "offer", &[("offer", &lp(offer))]);
        Ok(Offered { ctx, a_s, digest, slots })
    }

    /// The opening opens the commitment, and confirms what follows from all messages and from A_C and A_S.
    fn agreement(&self, run: &Run, opening: &[u8]) -> Verdict<Agreed> {
        let table = self.table;
        let Offered { ctx, a_s, digest: offer, .. } = run.offered.as_ref().ok_or("no offer")?;
        let (committed, seeds) = run.committed.as_ref().zip(run.seeds.as_ref()).ok_or("no seeds")?;
        let opening = fixed(OPENING, opening, 80)?;
        let ((label, rest), wire) = (opening[16..].split_at(32), &opening[..16]);
        let (rho, confirmation) = (Secret::try_from(label).map_err(|_| "no ρ")?, rest);
        let com = table.prf_in(EXCHANGE, "exchange_commitment", &rho, &[("ctx", ctx), ("label", wire)]);
        require(com.expose()[..] == committed[..], "it opens another commitment")?;
        let tables = hash(table, "exchange_tables", "tables", &[("tables", &run.tables)]);
        let transcript = hash(
            table,
            "exchange_transcript",
            "transcript",
            &[
                ("ctx", ctx),
                ("offer", offer),
                ("tables", &tables),
                ("com", committed),
                ("seeds", seeds),
                ("label", wire),
                ("rho", rho.expose()),
            ],
        );
        let scalar = self.run.ephemeral.get(&run.hello[1..33]).ok_or("nobody drew A_C")?;
        let scalar = S::scalar_decode(scalar).ok_or("no scalar")?;
        let shared = S::mul(&scalar, &S::decode(a_s).ok_or("A_S is no point")?);
        let agreed = extract(&transcript, S::encode(&shared).as_ref());
        let derived = |name: &str| table.prf_in(EXCHANGE, name, &agreed, &[("ctx", ctx)]);
        require(
            derived("exchange_client").expose()[..] == confirmation[..],
            "another confirmation of the drone",
        )?;
        let pseudonym = hash(table, "exchange_pseudonym", "pseudonym", &[("transcript", &transcript)]);
        let salt = hash(table, "exchange_pairwise", "pairwise", &[("ctx", ctx)]);
        Ok(Agreed {
            server: derived("exchange_server"),
            pseudonym: pseudonym[..16].to_vec(),
            pairwise: extract(&salt, derived("exchange_secret").expose()),
        })
    }

    /// §A5.1: an anonymous member leaves with a tag, as it has no key to sign with.
    fn admission_leave(&mut self, from: Node, leave: &AdmissionLeave) -> Verdict {
        require(leave.group.as_bytes() == GROUP.as_bytes(), "another group")?;
        let held = self.held.get(from).is_some_and(|(_, held)| *held == leave.held);
        require(held, "not the epoch that it holds")?;
        require(self.newest_pair(from)?.slot == leave.slot, "another slot")?;
        self.tag(from, leave.slot, &leave.tag, "leave", &[("held", &leave.held)])?;
        self.going.insert(from);
        Ok(())
    }
}
