//! The rules of the models, applied to a recorded run: which step may follow those before it, and which terms it has.
//!
//! Every key is derived from the pairwise secrets alone, by `models/terms.tsv`; so a tag, a mask, a seal or a signature
//! that the machines compute over anything else is refused.

use std::collections::{BTreeMap, BTreeSet};

use quiver_ainq::{
    DronePublicKey, EnrolmentRequest, Entry, Epoch, Header, Kind, LEADER_SLOT, Name, Part, Role, Slot,
    SpareStatement, Suite,
};
use quiver_crypto::canonical::Writer;
use quiver_crypto::{Digest, Secret, aead, extract};
use quiver_message::{GroupMessage, JoinRequest, Message};

use crate::suite::Overheard as S;
use crate::table::{Table, Values};
use crate::wire;
use crate::world::{GROUP, Node, Recording, Step};

type Verdict<T = ()> = Result<T, String>;

fn require(holds: bool, otherwise: &str) -> Verdict {
    if holds { Ok(()) } else { Err(otherwise.to_string()) }
}

/// A message that does not decode, or whose signature does not hold.
fn bad(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn lp(bytes: &[u8]) -> Vec<u8> {
    Writer::new().lp(bytes).finish()
}

/// W of the epoch in which a pair began, that epoch's counter, A, and the member's slot.
#[derive(Clone)]
struct Pair {
    w: Secret<32>,
    begun: Epoch,
    a: Secret<32>,
    slot: Slot,
}

struct Made {
    digest: Digest,
    key: Option<Secret<32>>,
}

/// What has happened so far.
pub(crate) struct Rules<'a> {
    run: &'a Recording,
    table: &'a Table,
    started: BTreeSet<Node>,
    enrolled: BTreeSet<Node>,
    nonces: BTreeMap<Vec<u8>, Node>,
    /// Cookies and challenges that were given out, with the nonces that they answer.
    cookies: BTreeMap<Vec<u8>, (Node, Vec<u8>)>,
    enrolling: BTreeMap<Digest, Node>,
    issued: BTreeSet<Node>,
    keys: BTreeMap<Node, DronePublicKey<S>>,
    /// E_now of each request to join, and those that no welcome answered yet.
    asked: BTreeMap<(Node, Vec<u8>), Vec<u8>>,
    waiting: BTreeSet<(Node, Vec<u8>)>,
    spares: BTreeMap<(Node, u64), Vec<u8>>,
    pairs: BTreeMap<Node, Vec<Pair>>,
    members: BTreeSet<Node>,
    made: BTreeMap<Epoch, Made>,
    /// Who was given the key of an epoch, and who acknowledged it.
    given: BTreeSet<(Node, Epoch)>,
    acknowledged: BTreeSet<(Node, Epoch)>,
    activated: BTreeSet<(Node, Epoch)>,
    held: BTreeMap<Node, (Epoch, Digest)>,
    in_step: BTreeSet<Node>,
    questions: BTreeMap<Vec<u8>, Node>,
    newest_question: BTreeMap<Node, u64>,
    going: BTreeSet<Node>,
    numbers: BTreeSet<(Node, Vec<u8>)>,
    inbox: Vec<(Node, Name, Vec<u8>)>,
}

/// Applies the rules to the steps of a run, in their order.
///
/// # Errors
/// The place of the first step that they refuse, and why.
pub(crate) fn check(run: &Recording, table: &Table, steps: &[Step]) -> Result<(), (usize, String)> {
    let mut rules = Rules::new(run, table);
    steps.iter().enumerate().try_for_each(|(place, step)| rules.step(step).map_err(|why| (place, why)))
}

impl<'a> Rules<'a> {
    const fn new(run: &'a Recording, table: &'a Table) -> Self {
        Self {
            run,
            table,
            started: BTreeSet::new(),
            enrolled: BTreeSet::new(),
            nonces: BTreeMap::new(),
            cookies: BTreeMap::new(),
            enrolling: BTreeMap::new(),
            issued: BTreeSet::new(),
            keys: BTreeMap::new(),
            asked: BTreeMap::new(),
            waiting: BTreeSet::new(),
            spares: BTreeMap::new(),
            pairs: BTreeMap::new(),
            members: BTreeSet::new(),
            made: BTreeMap::new(),
            given: BTreeSet::new(),
            acknowledged: BTreeSet::new(),
            activated: BTreeSet::new(),
            held: BTreeMap::new(),
            in_step: BTreeSet::new(),
            questions: BTreeMap::new(),
            newest_question: BTreeMap::new(),
            going: BTreeSet::new(),
            numbers: BTreeSet::new(),
            inbox: Vec::new(),
        }
    }

    fn step(&mut self, step: &Step) -> Verdict {
        match step {
            Step::Started(node) => {
                self.started.insert(node);
                self.in_step.remove(node);
                Ok(())
            }
            Step::Sent { from, to, bytes } => self.sent(from, to, bytes),
            Step::Enrolled(node) => {
                require(self.issued.contains(node), "no reply of the KGC before it")?;
                require(self.enrolled.insert(node), "enrolled twice")
            }
            Step::Evicts(node) => {
                self.going.insert(node);
                Ok(())
            }
            Step::Activated { at, epoch, digest, slot } => self.activated(at, *epoch, digest, *slot),
            Step::Received { at, channel, data } => {
                let place =
                    self.inbox.iter().position(|(to, on, text)| to == at && on == channel && text == data);
                self.inbox.remove(place.ok_or("nobody sent that to it")?);
                Ok(())
            }
            Step::Delivered { epoch, members } => {
                let by = |member: &&Node| self.acknowledged.contains(&(**member, *epoch));
                require(self.members.len() == *members, "another number of members")?;
                require(self.members.iter().all(|member| by(&member)), "somebody has not acknowledged it")
            }
        }
    }

    /// §7.3: a key is used that its leader gave, and epochs never go back.
    fn activated(&mut self, at: Node, epoch: Epoch, digest: &Digest, slot: Slot) -> Verdict {
        require(self.given.contains(&(at, epoch)), "nobody gave it the key")?;
        require(self.made.get(&epoch).is_some_and(|made| made.digest == *digest), "another header")?;
        require(
            self.pairs.get(at).and_then(|pairs| pairs.last()).is_some_and(|pair| pair.slot == slot),
            "another slot",
        )?;
        require(self.held.get(at).is_none_or(|(held, _)| *held <= epoch), "an epoch went back")?;
        require(self.activated.insert((at, epoch)), "a key that was used before")?;
        self.holds(at, epoch, *digest);
        Ok(())
    }

    /// The newest epoch that a member has persisted.
    fn holds(&mut self, member: Node, epoch: Epoch, digest: Digest) {
        let held = self.held.entry(member).or_insert((epoch, digest));
        *held = (*held).max((epoch, digest));
    }

    fn may(&self, role: &str, node: Node) -> bool {
        match role {
            "any" => true,
            "kgc" | "leader" => node == role,
            "drone" | "member" => node != "kgc",
            "edge" => node.starts_with("edge-"),
            _ => false,
        }
    }

    fn sent(&mut self, from: Node, to: Node, bytes: &[u8]) -> Verdict {
        let table = self.table;
        let row = wire::row(table, bytes).ok_or("a message that the table does not have")?;
        require(self.may(&row.from, from) && self.may(&row.to, to), "not its message, or not to it")?;
        require(self.started.contains(from), "it was never switched on").or_else(|why| {
            // The KGC is there from the beginning.
            if from == "kgc" { Ok(()) } else { Err(why) }
        })?;
        match Message::decode(&self.run.deployment, bytes).map_err(bad)? {
            Message::EnrolHello(hello) => self.fresh(from, &hello.nonce),
            Message::EnrolCookie(cookie) => self.cookie(to, &cookie.nonce, &cookie.cookie),
            Message::EnrolRequest(request) => {
                require(
                    self.cookies.get(&request.cookie[..]) == Some(&(from, request.nonce.to_vec())),
                    "not its cookie",
                )?;
                let digest = EnrolmentRequest::<S>::decode(&request.request).map_err(bad)?.digest();
                self.enrolling.insert(digest, from);
                Ok(())
            }
            Message::EnrolReply(reply) => {
                require(self.enrolling.get(&reply.request_digest) == Some(&to), "nobody asked for that")?;
                self.issued.insert(to);
                Ok(())
            }
            Message::JoinHello(hello) => {
                require(self.enrolled.contains(from), "it has no key yet")?;
                require(hello.group.as_bytes() == GROUP.as_bytes(), "another group")?;
                self.key(from, &DronePublicKey::decode(&hello.drone).map_err(bad)?)?;
                self.fresh(from, &hello.nonce)
            }
            Message::JoinChallenge(challenge) => {
                let leads = Role::Leader { group: Name::new(GROUP).map_err(bad)?, ordinal: 0 };
                require(challenge.leader.identity.role == leads, "no leader of the group")?;
                self.key(from, &challenge.leader)?;
                self.cookie(to, &challenge.nonce, &challenge.challenge)
            }
            Message::JoinRequest(request) => self.join_request(from, &request),
            Message::Welcome(welcome) => {
                require(
                    self.asked.contains_key(&(to, welcome.nonce.to_vec())),
                    "nobody asked to join with that",
                )?;
                let Part::Entry(entry) = &welcome.part else { return Err("no entry under flat".to_string()) };
                self.epoch(&welcome.header)?;
                self.entry(to, &welcome.header, entry, Some(&welcome.nonce))?;
                self.waiting.remove(&(to, welcome.nonce.to_vec()));
                self.in_step.insert(to);
                Ok(())
            }
            Message::Rekey(rekey) => {
                require(rekey.newcomers.is_empty(), "newcomers by wraps under flat")?;
                self.epoch(&rekey.header)?;
                match &rekey.part {
                    None => Ok(()),
                    Some(Part::Entry(entry)) => self.entry(to, &rekey.header, entry, None),
                    Some(_) => Err("wraps under flat".to_string()),
                }
            }
            Message::Ack(ack) => {
                // Who is not in step persists and acknowledges an epoch that it does not use yet.
                require(self.given.contains(&(from, ack.epoch)), "nobody gave it the key")?;
                let digest = self.made[&ack.epoch].digest;
                self.tag(from, ack.slot, &ack.tag, "ack", &[("digest", &digest)])?;
                self.acknowledged.insert((from, ack.epoch));
                self.holds(from, ack.epoch, digest);
                Ok(())
            }
            Message::CatchUpRequest(question) => {
                require(question.group.as_bytes() == GROUP.as_bytes(), "another group")?;
                require(
                    self.held.get(from).is_some_and(|(_, held)| *held == question.held),
                    "not what it holds",
                )?;
                let count = question.number.first_chunk().map_or(0, |count| u64::from_be_bytes(*count));
                let before = self.newest_question.insert(from, count);
                require(before.is_none_or(|before| before < count), "its number does not rise")?;
                self.tag(
                    from,
                    question.slot,
                    &question.tag,
                    "catch_up",
                    &[("r", &question.number), ("held", &question.held)],
                )?;
                self.questions.insert(question.number.to_vec(), from);
                Ok(())
            }
            Message::CatchUpReply(answer) => {
                require(self.questions.remove(&answer.number[..]) == Some(to), "nobody asked that")?;
                let digest = self.epoch(&answer.header)?;
                if let Some(Part::Entry(entry)) = &answer.part {
                    self.entry(to, &answer.header, entry, None)?;
                }
                let slot = self.newest_pair(to)?.slot;
                self.tag(to, slot, &answer.tag, "fresh", &[("digest", &digest), ("r", &answer.number)])?;
                self.in_step.insert(to);
                Ok(())
            }
            Message::SparePublication(shown) => {
                require(shown.group.as_bytes() == GROUP.as_bytes(), "another group")?;
                require(self.newest_pair(from)?.slot == shown.slot, "another slot")?;
                self.spare(from, &shown.spare)
            }
            Message::SpareAck(ack) => {
                require(self.spares.contains_key(&(to, ack.q)), "it showed no such point")?;
                let slot = self.newest_pair(to)?.slot;
                self.tag(to, slot, &ack.tag, "spare_ack", &[("q", &ack.q.to_be_bytes())])
            }
            Message::Leave(leave) => {
                require(
                    self.held.get(from).is_some_and(|(_, held)| *held == leave.held),
                    "not the epoch that it holds",
                )?;
                require(self.newest_pair(from)?.slot == leave.slot, "another slot")?;
                let key = self.keys.get(from).ok_or("nobody knows its key")?;
                let values: Values<'_> = &[
                    ("group", &lp(leave.group.as_bytes())),
                    ("drone", &lp(&key.encode())),
                    ("held", &leave.held),
                ];
                let (label, statement) = self.table.statement("leave", values);
                leave.signature.verify(&self.run.deployment, key, label, &statement).map_err(bad)?;
                self.going.insert(from);
                Ok(())
            }
            Message::EvictionNotice(notice) => {
                let key = self.keys.get("leader").ok_or("nobody knows the leader's key")?;
                require(notice.leader.encode() == key.encode(), "another leader")?;
                for serial in &notice.serials {
                    let named = |node: &&Node| {
                        self.keys.get(**node).is_some_and(|key| key.identity.serial == *serial)
                    };
                    require(self.going.iter().any(|node| named(&node)), "nobody was to evict that drone")?;
                }
                let epoch = [notice.epoch.term.to_be_bytes(), notice.epoch.counter.to_be_bytes()].concat();
                let values: Values<'_> = &[
                    ("group", &lp(notice.group.as_bytes())),
                    ("epoch", &epoch),
                    ("serials", &notice.serials.concat()),
                ];
                let (label, statement) = self.table.statement("evict", values);
                notice.signature.verify(&self.run.deployment, key, label, &statement).map_err(bad)
            }
            Message::GroupMessage(message) => self.group_message(from, to, &message),
            // Nothing of these is a term of the models: refusals, which nobody signs, and revocation lists.
            _ => Ok(()),
        }
    }

    /// A nonce that nobody used before.
    fn fresh(&mut self, from: Node, nonce: &[u8]) -> Verdict {
        require(self.nonces.insert(nonce.to_vec(), from).is_none(), "a nonce that was used")
    }

    /// A cookie answers a hello.
    fn cookie(&mut self, to: Node, nonce: &[u8], cookie: &[u8]) -> Verdict {
        require(self.nonces.get(nonce) == Some(&to), "no hello before it")?;
        self.cookies.insert(cookie.to_vec(), (to, nonce.to_vec()));
        Ok(())
    }

    /// A node has one key, of its own name.
    fn key(&mut self, of: Node, key: &DronePublicKey<S>) -> Verdict {
        require(key.identity.name.as_bytes() == of.as_bytes(), "another's key")?;
        let known = self.keys.entry(of).or_insert_with(|| key.clone());
        require(known.encode() == key.encode(), "another key than before")
    }

    /// §6.1: signed, for a challenge that is taken once.
    fn join_request(&mut self, from: Node, request: &JoinRequest) -> Verdict {
        let answered = self.cookies.remove(&request.challenge[..]);
        require(
            answered == Some((from, request.nonce.to_vec())),
            "not its challenge, or one that was taken",
        )?;
        let decoded = request.decode::<S>().map_err(bad)?;
        self.key(from, &decoded.drone)?;
        self.spare(from, &decoded.spare)?;
        let leader = self.keys.get("leader").ok_or("nobody knows the leader's key")?;
        let values: Values<'_> = &[
            ("group", &lp(request.group.as_bytes())),
            ("leader", &lp(&leader.encode())),
            ("drone", &lp(&decoded.drone.encode())),
            ("n_l", &request.challenge),
            ("n_e", &request.nonce),
            ("e", decoded.ephemeral.as_bytes()),
            ("q", &decoded.spare.q.to_be_bytes()),
            ("e_q", decoded.spare.point.as_bytes()),
            ("spare", &lp(&decoded.spare.signature.encode())),
        ];
        let (label, statement) = self.table.statement("join", values);
        decoded.signature.verify(&self.run.deployment, &decoded.drone, label, &statement).map_err(bad)?;
        let e = decoded.ephemeral.as_bytes().to_vec();
        self.asked.insert((from, request.nonce.to_vec()), e);
        self.waiting.insert((from, request.nonce.to_vec()));
        Ok(())
    }

    /// §6.6: a spare point under its drone's signature.
    fn spare(&mut self, from: Node, spare: &SpareStatement<S>) -> Verdict {
        let key = self.keys.get(from).ok_or("nobody knows its key")?;
        let values: Values<'_> = &[
            ("group", &lp(GROUP.as_bytes())),
            ("drone", &key.encode()),
            ("q", &spare.q.to_be_bytes()),
            ("e", spare.point.as_bytes()),
        ];
        let (label, statement) = self.table.statement("spare", values);
        spare.signature.verify(&self.run.deployment, key, label, &statement).map_err(bad)?;
        let point = spare.point.as_bytes().to_vec();
        let known = self.spares.entry((from, spare.q)).or_insert_with(|| point.clone());
        require(*known == point, "two points of one number")
    }

    /// §7.1: a header, signed by the group's leader, of an epoch that is known or the next one. Gives D.
    fn epoch(&mut self, header: &Header<S>) -> Verdict<Digest> {
        let (core, epoch) = (&header.core, header.core.epoch);
        let leader = self.keys.get("leader").ok_or("nobody knows the leader's key")?;
        require(
            core.leader.encode() == leader.encode() && core.group.as_bytes() == GROUP.as_bytes(),
            "not its leader",
        )?;
        require(epoch.term & 0xffff == 0, "another ordinal")?;
        let d0 = core.digest(&self.run.deployment);
        let values: Values<'_> = &[("d0", &d0), ("entries_root", &header.entries_root), ("tag", &header.tag)];
        let digest = self.table.hash("digest", values);
        let (label, statement) = self.table.statement("header", &[("digest", &digest)]);
        header.signature.verify(&self.run.deployment, leader, label, &statement).map_err(bad)?;
        if let Some(made) = self.made.get(&epoch) {
            return require(made.digest == digest, "two headers for one epoch").map(|()| digest);
        }
        if let Some((newest, made)) = self.made.last_key_value() {
            let next = match core.kind {
                Kind::Rekey => {
                    Epoch { term: newest.term, counter: newest.counter + 1 } == epoch
                        && core.prev == made.digest
                }
                Kind::Open => newest.term < epoch.term && epoch.counter == 1,
            };
            require(next, "no epoch that follows the newest one")?;
        }
        for run in core.removed.iter() {
            let holder = self.members.iter().copied().find(|member| self.slot_of(member) == Some(run));
            let holder = holder.ok_or("nobody is in the slot that is removed")?;
            // §6.2: a join by a current member is a leave and a join.
            let rejoins = self.waiting.iter().any(|(node, _)| *node == holder);
            require(rejoins || self.going.contains(holder), "nobody wanted it to go")?;
            self.members.remove(holder);
        }
        self.made.insert(epoch, Made { digest, key: None });
        Ok(digest)
    }

    fn slot_of(&self, member: Node) -> Option<Slot> {
        self.pairs.get(member)?.last().map(|pair| pair.slot)
    }

    fn newest_pair(&self, member: Node) -> Verdict<&Pair> {
        Ok(self.pairs.get(member).and_then(|pairs| pairs.last()).ok_or("it has no key with the leader")?)
    }

    /// A tag under A of a pair that the member has or had: after a term opened, it may know the former one alone.
    fn tag(&self, member: Node, slot: Slot, tag: &[u8; 32], name: &str, values: &[(&str, &[u8])]) -> Verdict {
        let pairs = self.pairs.get(member).ok_or("it has no key with the leader")?;
        let holds = |pair: &Pair| pair.slot == slot && self.table.prf(name, &pair.a, values).expose() == tag;
        require(pairs.iter().any(holds), "its tag does not hold")
    }

    /// §7.1, §9.1: a mask that is off with the member's pad, and the key that it gives is the header's.
    fn entry(&mut self, to: Node, header: &Header<S>, entry: &Entry, nonce: Option<&[u8]>) -> Verdict {
        let epoch = header.core.epoch;
        let pairs = if header.core.adds(entry.slot) {
            let points = match (entry.q, nonce) {
                (Some(q), None) => vec![self.spares.get(&(to, q)).ok_or("it showed no such point")?.clone()],
                (None, _) => self.one_time_points(to, nonce),
                (Some(_), Some(_)) => return Err("a spare point in a welcome".to_string()),
            };
            self.candidates(to, header, entry, &points)?
        } else {
            vec![self.newest_pair(to)?.clone()]
        };
        let d0 = header.core.digest(&self.run.deployment);
        let key_of = |pair: &Pair| {
            let steps =
                epoch.counter.checked_sub(pair.begun.counter).filter(|_| pair.begun.term == epoch.term)?;
            let w = (0..steps).fold(pair.w.clone(), |w, _| self.table.prf("step", &w, &[]));
            let pad = self.table.prf("pad", &w, &[("d0", &d0), ("slot", &entry.slot.to_be_bytes())]);
            let key = pad.unmask(&entry.wrap);
            let tag = self.table.prf("confirm", &key, &[("d0", &d0), ("entries_root", &header.entries_root)]);
            (pair.slot == entry.slot && *tag.expose() == header.tag).then_some(key)
        };
        let (pair, key) = pairs
            .iter()
            .find_map(|pair| Some((pair.clone(), key_of(pair)?)))
            .ok_or("the mask gives no key of this epoch")?;
        let made = self.made.get_mut(&epoch).ok_or("no such epoch")?;
        made.key = Some(key);
        if header.core.adds(entry.slot) {
            let pairs = self.pairs.entry(to).or_default();
            if pairs.last().is_none_or(|last| last.begun != pair.begun) {
                pairs.push(pair);
                // Numbers rise within a membership: the next one has another A.
                if entry.q.is_none() {
                    self.newest_question.remove(to);
                }
                self.going.remove(to);
            }
            self.members.insert(to);
        }
        self.given.insert((to, epoch));
        Ok(())
    }

    /// E_now of the request that a welcome answers; of all of its requests where another message repeats that.
    fn one_time_points(&self, to: Node, nonce: Option<&[u8]>) -> Vec<Vec<u8>> {
        let of_node = self
            .asked
            .iter()
            .filter(|((node, asked), _)| *node == to && nonce.is_none_or(|nonce| asked == nonce));
        of_node.map(|(_, e)| e.clone()).collect()
    }

    /// The pairs that a member and its leader may have made, one for each secret that anybody computed.
    fn candidates(
        &self,
        to: Node,
        header: &Header<S>,
        entry: &Entry,
        points: &[Vec<u8>],
    ) -> Verdict<Vec<Pair>> {
        let (core, key) = (&header.core, self.keys.get(to).ok_or("nobody knows its key")?);
        let v = core.point.as_ref().ok_or("no point V")?;
        let p_pub = [lp(S::ID.as_bytes()), self.run.deployment.master().as_bytes().to_vec()].concat();
        let pair = |(e, secret): (&Vec<u8>, &Vec<u8>)| {
            let values: Values<'_> = &[
                ("p_pub", &p_pub),
                ("group", &lp(core.group.as_bytes())),
                ("term", &core.epoch.term.to_be_bytes()),
                ("counter", &core.epoch.counter.to_be_bytes()),
                ("v", v.as_bytes()),
                ("leader", &core.leader.encode()),
                ("drone", &key.encode()),
                ("slot", &entry.slot.to_be_bytes()),
                ("q", &entry.q.unwrap_or(0).to_be_bytes()),
                ("e", e),
            ];
            let w = extract(&self.table.hash("pair", values), secret);
            let a = self.table.prf("auth", &w, &[]);
            Pair { w, a, begun: core.epoch, slot: entry.slot }
        };
        let secrets = |e| self.run.secrets.iter().map(move |secret| pair((e, secret)));
        Ok(points.iter().flat_map(secrets).collect())
    }

    /// §13: sealed under the key of an epoch that its sender holds and is in step with, once.
    fn group_message(&mut self, from: Node, to: Node, message: &GroupMessage) -> Verdict {
        let (frame, made) = (&message.frame, self.made.get(&message.epoch).ok_or("no such epoch")?);
        let (digest, key) = (made.digest, made.key.as_ref().ok_or("nobody was given its key")?);
        require(message.group.as_bytes() == GROUP.as_bytes(), "another group")?;
        if from == "leader" {
            require(
                frame.slot == LEADER_SLOT && message.source.is_some(),
                "not the leader's slot, or not signed",
            )?;
        } else {
            require(
                self.held.get(from).is_some_and(|(_, held)| *held == digest),
                "not the epoch that it holds",
            )?;
            require(self.activated.contains(&(from, message.epoch)), "a key that it does not use")?;
            require(self.in_step.contains(from), "it is not in step")?;
            require(self.newest_pair(from)?.slot == frame.slot, "another slot")?;
        }
        let (slot, start) =
            (frame.slot.to_be_bytes(), [&frame.boot_no.to_be_bytes()[..], &frame.salt].concat());
        let traffic = self.table.prf("traffic", key, &[("digest", &digest)]);
        let of_start = |name: &str| self.table.prf(name, &traffic, &[("slot", &slot), ("start", &start)]);
        let mut aad = Writer::new();
        aad.fixed(&digest).fixed(&slot).fixed(&start).u64(frame.counter).lp(message.channel.as_bytes());
        match &message.source {
            None => aad.u8(0),
            Some(source) => aad.u8(1).fixed(source.handle::<S>().as_bytes()),
        };
        let aad = aad.finish();
        let counter = u32::try_from(frame.counter).map_err(bad)?;
        let mut nonce = [0; 12];
        nonce[..8].copy_from_slice(&frame.hedge);
        nonce[8..].copy_from_slice(&counter.to_be_bytes());
        let text = aead::open(&of_start("sender"), &nonce, &aad, &frame.ciphertext).map_err(bad)?;
        let hedge = self.table.prf("nonce", &of_start("hedge"), &[("aad", &aad), ("plaintext", &text)]);
        require(hedge.expose()[..8] == frame.hedge, "another hedge")?;
        if let Some(source) = &message.source {
            let (drone, signature) = source.decode::<S>(None).map_err(bad)?;
            require(self.keys.get(from).is_some_and(|key| key.encode() == drone.encode()), "another's key")?;
            let values: Values<'_> = &[
                ("group", &lp(message.group.as_bytes())),
                ("digest", &digest),
                ("slot", &slot),
                ("start", &start),
                ("counter", &frame.counter.to_be_bytes()),
                ("hedge", &frame.hedge),
                ("name", &lp(message.channel.as_bytes())),
                ("sealed", &self.table.hash("sealed", &[("ciphertext", &lp(&frame.ciphertext))])),
            ];
            let (label, statement) = self.table.statement("command", values);
            signature.verify(&self.run.deployment, &drone, label, &statement).map_err(bad)?;
        }
        // Each receiver is sent the same bytes once.
        let number =
            [&slot[..], &start, &frame.counter.to_be_bytes(), &[u8::from(message.source.is_some())]].concat();
        require(self.numbers.insert((to, number)), "a number that was used")?;
        self.inbox.push((to, message.channel.clone(), text.to_vec()));
        Ok(())
    }
}
