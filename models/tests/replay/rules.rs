//! The rules of the models, applied to a recorded run: which step may follow those before it, and which terms
//! it has.
//!
//! Every key is derived from the pairwise secrets alone, by `models/terms.tsv`; so a tag, a mask, a seal or a
//! signature that the machines compute over anything else is refused.

mod admission;
mod datagrams;
mod enrolment;
mod equivocation;
mod second_factor;
mod threshold;

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::sync::{Mutex, PoisonError};

use quiver_ainq::{
    Delta, DronePublicKey, Entry, Epoch, EpochKind, EpochPart, Header, HeaderCore, LEADER_SLOT, Label, Name,
    PathMessage, Role, Signature, Slot, SpareStatement, StrategyKind, Suite,
};
use quiver_crypto::canonical::Writer;
use quiver_crypto::{Digest, Secret, aead, extract};
use quiver_message::{
    GroupMessage, JoinRequest, KemOffer, Message, Newcomers, Replica, ReplicaChunk, StandBy,
};

pub(crate) use self::admission::AdmissionMessage;
pub(crate) use self::datagrams::kind as kind_of_datagram;
pub(crate) use self::second_factor::Factor;
use crate::recording::{GROUP, Node, Recording, Step};
use crate::suite::Overheard as S;
use crate::table::{Table, Values};
use crate::wire;
use crate::wraps::{TreeNode, Wraps, node};

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

/// W of the epoch in which a pair began, that epoch's counter, A, the member's slot, and what W was made of
/// where there is a second factor.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) w: Secret<32>,
    begun: Epoch,
    a: Secret<32>,
    slot: Slot,
    pub(crate) factor: Option<Factor>,
    /// Fingerprint of the slot keys for which a member without a name was admitted.
    period: Option<[u8; 32]>,
}

#[derive(Clone)]
pub(crate) struct Made {
    core: HeaderCore<S>,
    pub(crate) digest: Digest,
    pub(crate) d0: Digest,
    pub(crate) root: Digest,
    pub(crate) tag: [u8; 32],
    pub(crate) key: Option<Secret<32>>,
}

/// Keys that a member had once it had an epoch: W of its slot's leaf, and of a tree the keys above it by
/// level.
#[derive(Clone)]
pub(crate) struct Held {
    pub(crate) slot: Slot,
    pub(crate) w: Secret<32>,
    /// W with which the pair began, and the counter of that epoch.
    pub(crate) first: (Secret<32>, u64),
    pub(crate) path: Option<Vec<Secret<32>>>,
}

/// Messages that travelled under keys of the group, for an adversary that recorded them.
#[derive(Clone, Default)]
pub(crate) struct Sealed {
    pub(crate) entries: Vec<(Epoch, Slot, [u8; 32])>,
    pub(crate) paths: Vec<(Epoch, Slot, Vec<u8>)>,
    pub(crate) wraps: Vec<(Epoch, TreeNode, TreeNode, [u8; 32])>,
}

/// Deployment, key, label, signature and statement of every signature that was found to hold.
static VERIFIED: Mutex<BTreeSet<Vec<u8>>> = Mutex::new(BTreeSet::new());

/// Returns true if this holds, which is remembered under the name.
fn remembered(name: Vec<u8>, holds: impl FnOnce() -> bool) -> bool {
    let verified = || VERIFIED.lock().unwrap_or_else(PoisonError::into_inner);
    if verified().contains(&name) {
        return true;
    }
    let held = holds();
    if held {
        verified().insert(name);
    }
    held
}

/// A message of the group that a node may receive, and the epoch under whose key it was sealed, with D.
#[derive(Clone)]
struct Letter {
    to: Node,
    channel: Name,
    text: Vec<u8>,
    epoch: Epoch,
    digest: Digest,
}

/// Events so far.
#[derive(Clone)]
pub(crate) struct Rules<'a> {
    run: &'a Recording,
    table: &'a Table,
    started: BTreeSet<Node>,
    enrolled: BTreeSet<Node>,
    nonces: BTreeMap<Vec<u8>, Node>,
    /// Nonces of hellos that came from no node.
    injected: BTreeSet<Vec<u8>>,
    /// Leaders, nodes over whose connections they were asked, and the members whose questions these were.
    misdirected: BTreeSet<(Node, Node, Node)>,
    /// Challenges that nobody sent as they came, with the leader's keys that they name.
    misleading: BTreeSet<(Vec<u8>, Vec<u8>)>,
    /// Cookies and challenges that were given out, with the nonces that they answer.
    cookies: BTreeMap<Vec<u8>, (Node, Vec<u8>)>,
    issued: BTreeSet<Node>,
    enrolments: enrolment::Enrolments,
    quorum: threshold::QuorumEnrolments,
    factors: second_factor::SecondFactors,
    admissions: admission::Admissions,
    air: datagrams::Air,
    pub(crate) keys: BTreeMap<Node, DronePublicKey<S>>,
    /// E_now of each request to join, and those that no welcome answered yet.
    asked: BTreeMap<(Node, Vec<u8>), Vec<u8>>,
    waiting: BTreeSet<(Node, Vec<u8>)>,
    spares: BTreeMap<(Node, u64), Vec<u8>>,
    pub(crate) pairs: BTreeMap<Node, Vec<Pair>>,
    members: BTreeSet<Node>,
    /// Members that the term opened without: their slots are theirs until they join again.
    absent: BTreeSet<Node>,
    /// Slots that headers gave away and did not take back, with the newest of those epochs: whoever joined may not have
    /// heard of it.
    seated: BTreeMap<Slot, Epoch>,
    /// Tags of epochs of whose short headers nobody could complete one.
    unread: BTreeMap<Epoch, [u8; 32]>,
    /// Newest epochs that took slots back.
    taken_back: BTreeMap<Slot, Epoch>,
    pub(crate) made: BTreeMap<Epoch, Made>,
    contradictions: equivocation::Contradictions,
    /// Keys of a tree's nodes after the epoch, as whoever was given them has them.
    nodes: BTreeMap<(Epoch, u8, u32), Secret<32>>,
    pub(crate) states: BTreeMap<(Node, Epoch), Held>,
    pub(crate) sealed: Sealed,
    /// Number of the last question of each deputy, questions without an answer, and the epochs that each was
    /// sent.
    stands_by: BTreeMap<(Node, Vec<u8>), u64>,
    copies: BTreeSet<(Node, Node, Vec<u8>, u64)>,
    copied: BTreeSet<(Node, Epoch)>,
    /// Holders of slots in the copies that deputies were sent, and in welcomes that leaders handed to relays.
    rosters: BTreeMap<(Node, Slot), Node>,
    /// Nodes that were given the key of an epoch, with D of its header, and nodes that acknowledged it.
    given: BTreeMap<(Node, Epoch), BTreeSet<Digest>>,
    acknowledged: BTreeSet<(Node, Epoch)>,
    activated: BTreeSet<(Node, Epoch)>,
    held: BTreeMap<Node, (Epoch, Digest)>,
    in_step: BTreeSet<Node>,
    questions: BTreeMap<Vec<u8>, Node>,
    newest_question: BTreeMap<Node, u64>,
    going: BTreeSet<Node>,
    /// Periods that are over by a leader's clock, by their slot keys.
    over: BTreeSet<(Node, [u8; 32])>,
    numbers: BTreeSet<(Node, Vec<u8>)>,
    inbox: Vec<Letter>,
}

/// The rules after the first steps of an accepted run. Of a run that is changed at one place, what stands
/// before that place is not checked again.
pub(crate) struct Prefix<'a> {
    run: &'a Recording,
    rules: Rules<'a>,
    length: usize,
}

impl<'a> Prefix<'a> {
    /// Before the first step.
    pub(crate) fn new(run: &'a Recording, table: &'a Table) -> Self {
        Self { run, rules: Rules::new(run, table), length: 0 }
    }

    /// Goes on to the steps before this place, which is not before where it is.
    pub(crate) fn extend(&mut self, place: usize) {
        for step in &self.run.steps[self.length..place] {
            self.rules.step(step).expect("the run is accepted");
        }
        self.length = place;
    }

    /// Returns true if the rules refuse a run that goes on so, in place of what the recorded run does.
    pub(crate) fn refuses<'b>(&self, steps: impl IntoIterator<Item = &'b Step>) -> bool {
        let mut rules = self.rules.clone();
        steps.into_iter().any(|step| rules.step(step).is_err())
    }

    /// Asserts that the rules refuse the run `what` with any one bound field of the message at this place altered. Returns
    /// the number of fields.
    pub(crate) fn refuses_alterations(&mut self, what: &str, place: usize) -> usize {
        let Step::Sent { from, to, bytes } = &self.run.steps[place] else {
            panic!("{what}: {place} is no message")
        };
        self.extend(place);
        let mut fields = 0;
        for (field, bytes) in wire::alterations(self.rules.table, bytes) {
            let altered = Step::Sent { from, to, bytes };
            let refused = self.refuses(iter::once(&altered).chain(&self.run.steps[place + 1..]));
            assert!(refused, "{what}: step {place} with another {field} is taken");
            fields += 1;
        }
        fields
    }
}

/// Applies the rules to the steps of a run, in their order.
///
/// # Errors
/// The place of the first step that they refuse, and why.
pub(crate) fn check(run: &Recording, table: &Table, steps: &[Step]) -> Result<(), (usize, String)> {
    follow(run, table, steps).map(drop)
}

/// The same, and what is known then.
///
/// # Errors
/// As [`check`].
pub(crate) fn follow<'a>(
    run: &'a Recording,
    table: &'a Table,
    steps: &[Step],
) -> Result<Rules<'a>, (usize, String)> {
    let mut rules = Rules::new(run, table);
    let mut numbered = steps.iter().enumerate();
    numbered.try_for_each(|(place, step)| rules.step(step).map_err(|why| (place, why)))?;
    Ok(rules)
}

impl<'a> Rules<'a> {
    fn new(run: &'a Recording, table: &'a Table) -> Self {
        Self {
            run,
            table,
            started: BTreeSet::new(),
            enrolled: BTreeSet::new(),
            nonces: BTreeMap::new(),
            injected: BTreeSet::new(),
            misdirected: BTreeSet::new(),
            misleading: BTreeSet::new(),
            cookies: BTreeMap::new(),
            issued: BTreeSet::new(),
            enrolments: enrolment::Enrolments::default(),
            quorum: threshold::QuorumEnrolments::default(),
            factors: second_factor::SecondFactors::default(),
            admissions: admission::Admissions::default(),
            air: datagrams::Air::default(),
            keys: BTreeMap::new(),
            asked: BTreeMap::new(),
            waiting: BTreeSet::new(),
            spares: BTreeMap::new(),
            pairs: BTreeMap::new(),
            members: BTreeSet::new(),
            absent: BTreeSet::new(),
            seated: BTreeMap::new(),
            unread: BTreeMap::new(),
            taken_back: BTreeMap::new(),
            made: BTreeMap::new(),
            contradictions: equivocation::Contradictions::default(),
            nodes: BTreeMap::new(),
            states: BTreeMap::new(),
            sealed: Sealed { entries: Vec::new(), paths: Vec::new(), wraps: Vec::new() },
            stands_by: BTreeMap::new(),
            copies: BTreeSet::new(),
            copied: BTreeSet::new(),
            rosters: BTreeMap::new(),
            given: BTreeMap::new(),
            acknowledged: BTreeSet::new(),
            activated: BTreeSet::new(),
            held: BTreeMap::new(),
            in_step: BTreeSet::new(),
            questions: BTreeMap::new(),
            newest_question: BTreeMap::new(),
            going: BTreeSet::new(),
            over: BTreeSet::new(),
            numbers: BTreeSet::new(),
            inbox: Vec::new(),
        }
    }

    fn step(&mut self, step: &Step) -> Verdict {
        match step {
            Step::Started(node) => {
                self.started.insert(node);
                self.restarts_with_proof(node);
                self.in_step.remove(node);
                Ok(())
            }
            Step::Sent { from, to, bytes } => self.sent(from, to, bytes),
            Step::Injected { to, over, of, bytes } => {
                self.injected(to, over, *of, bytes);
                Ok(())
            }
            Step::Handed { from, to, bytes } => {
                self.handed(from, to, bytes);
                Ok(())
            }
            Step::Enrolled(node) => {
                require(self.issued.contains(node), "no reply of the KGC before it")?;
                require(self.enrolled.insert(node), "enrolled twice")
            }
            Step::Evicts(node) => {
                self.going.insert(node);
                Ok(())
            }
            Step::PeriodOver { at, slots } => {
                self.over.insert((at, *slots));
                Ok(())
            }
            Step::Convicted { at, epoch } => self.convicts(at, *epoch),
            Step::Activated { at, epoch, digest, slot } => self.activated(at, *epoch, digest, *slot),
            Step::Received { at, channel, data } => {
                let same = |letter: &Letter| {
                    letter.to == *at
                        && letter.channel == *channel
                        && letter.text == *data
                        && self.opens(at, letter.epoch, &letter.digest)
                };
                let place = self.inbox.iter().position(same).ok_or("nobody sent that to it")?;
                self.inbox.remove(place);
                Ok(())
            }
            Step::Delivered { epoch, members } => {
                // A header that opens a term does not say whom its leader knows: of those who were sent none
                // of its keys, it may know nothing.
                let of_term = |member: &Node| {
                    let term = (*member, Epoch { counter: 0, ..*epoch })
                        ..=(*member, Epoch { counter: u64::MAX, ..*epoch });
                    self.given.range(term).next().is_some()
                };
                let known: Vec<Node> = self.members.iter().copied().filter(of_term).collect();
                // Members that follow another leader's newer term by now were this one's.
                if self.made.keys().next_back().is_some_and(|newest| newest.term > epoch.term) {
                    let acknowledged = self.acknowledged.iter().filter(|(_, of)| of == epoch).count();
                    return require(acknowledged >= *members, "fewer have acknowledged it");
                }
                // An epoch that nobody is sent may put those out whose period is over.
                let opener = self.run.group.opener(*epoch).ok_or("another ordinal")?;
                let stays = |member: &Node| {
                    self.slot_of(member).is_none_or(|slot| !self.outlives(opener, member, slot))
                };
                let stay: Vec<Node> = known.iter().copied().filter(stays).collect();
                require((stay.len()..=known.len()).contains(members), "another number of members")?;
                let by = |member: &Node| self.acknowledged.contains(&(*member, *epoch));
                require(stay.iter().all(by), "somebody has not acknowledged it")
            }
            Step::Datagram { from, bytes } => self.datagram(from, bytes),
            Step::Heard { at, slot, signer, data } => self.heard(at, *slot, signer.as_ref(), data),
        }
    }

    /// §7.3: a key is used that its leader gave, and epochs never go back.
    fn activated(&mut self, at: Node, epoch: Epoch, digest: &Digest, slot: Slot) -> Verdict {
        let given = self.given.get(&(at, epoch)).ok_or("nobody gave it the key")?;
        require(given.contains(digest), "another header")?;
        self.follows(at, epoch, *digest)?;
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

    /// Returns true if this is D of what a member holds, or of a newer epoch that it was given: it may have
    /// persisted that, and died before it said so.
    fn holds_or_persisted(&mut self, member: Node, digest: &Digest) -> bool {
        if self.held.get(member).is_some_and(|(_, held)| held == digest) {
            return true;
        }
        let held = self.held.get(member).map(|(held, _)| *held);
        let newer = self.given.range((member, Epoch { term: 0, counter: 0 })..);
        let newer = newer.take_while(|((node, _), _)| *node == member);
        let newer = newer.filter(|(_, digests)| digests.contains(digest)).map(|((_, epoch), _)| *epoch);
        let newer = newer.filter(|epoch| held.is_none_or(|held| held < *epoch)).last();
        match newer.filter(|epoch| self.one_header(member, *epoch, *digest).is_ok()) {
            Some(epoch) => {
                self.holds(member, epoch, *digest);
                true
            }
            None => false,
        }
    }

    fn may(&self, role: &str, node: Node) -> bool {
        match role {
            "any" => true,
            "kgc" => node.starts_with("kgc"),
            "leader" => self.run.group.leads(node),
            "drone" | "member" => !node.starts_with("kgc"),
            "edge" => node.starts_with("edge-"),
            _ => false,
        }
    }

    /// A leader sends what is a member's to where the member's newest question came from.
    fn sent(&mut self, from: Node, to: Node, bytes: &[u8]) -> Verdict {
        let moved = self
            .misdirected
            .range((from, to, "")..)
            .map_while(|(leader, over, member)| (*leader == from && *over == to).then_some(*member));
        let moved: Vec<Node> = moved.collect();
        if moved.is_empty() {
            return self.sent_to(from, to, bytes);
        }
        let before = self.clone();
        let own = self.sent_to(from, to, bytes);
        let mut verdict = own.clone();
        for member in moved {
            if verdict.is_err() {
                self.clone_from(&before);
                verdict = self.sent_to(from, member, bytes);
            }
        }
        verdict.or(own)
    }

    fn sent_to(&mut self, from: Node, to: Node, bytes: &[u8]) -> Verdict {
        let table = self.table;
        let row = wire::row(table, bytes).ok_or("a message that the table does not have")?;
        let relayed = to.starts_with("relay-") && self.run.group.leads(from);
        require(
            self.may(&row.from, from) && (relayed || self.may(&row.to, to)),
            "not its message, or not to it",
        )?;
        require(self.started.contains(from), "it was never switched on").or_else(|why| {
            // The KGC is there from the beginning.
            if from.starts_with("kgc") { Ok(()) } else { Err(why) }
        })?;
        let message = wire::decode(&self.run.deployment, bytes).map_err(bad)?;
        self.show_headers(to, &message)?;
        if to.starts_with("relay-") {
            return self.handed_to_a_relay(from, &message);
        }
        match &*message {
            Message::EnrolHello(hello) => self.fresh(from, &hello.nonce),
            Message::EnrolCookie(cookie) => self.cookie(to, &cookie.nonce, &cookie.cookie),
            Message::EnrolRequest(request) => self.enrol_request(from, to, request),
            Message::EnrolReply(reply) => self.enrol_reply(from, to, reply),
            message @ Message::Extension(_) => match (message.extension(), message.extension()) {
                (Some(read), _) => self.admission(from, to, &read.map_err(bad)?),
                (_, Some(read)) => self.enrolment_with_a_quorum(from, to, &read.map_err(bad)?),
                (None, None) => Err("a message of no known kind".to_string()),
            },
            Message::JoinCiphertext(answer) => self.ciphertext(from, to, answer),
            Message::JoinHello(hello) => {
                require(self.enrolled.contains(from), "it has no key yet")?;
                require(hello.group.as_bytes() == GROUP.as_bytes(), "another group")?;
                self.key(from, &DronePublicKey::decode(&hello.drone).map_err(bad)?)?;
                self.fresh(from, &hello.nonce)
            }
            Message::JoinChallenge(challenge) => {
                let ordinal = self.run.group.leaders.iter().position(|leader| *leader == from);
                let ordinal = ordinal.ok_or("no leader")? as u16;
                let leads = Role::Leader { group: Name::new(GROUP).map_err(bad)?, ordinal };
                require(challenge.leader.identity.role == leads, "no leader of the group")?;
                require(self.enrolled.contains(from), "it has no key yet")?;
                self.key(from, &challenge.leader)?;
                self.cookie(to, &challenge.nonce, &challenge.challenge)
            }
            Message::JoinRequest(request) => self.join_request(from, to, request),
            Message::Welcome(welcome) => {
                require(
                    self.asked.contains_key(&(to, welcome.nonce.to_vec())),
                    "nobody asked to join with that",
                )?;
                self.epoch(&welcome.header)?;
                self.of_its_leader(from, &welcome.header)?;
                match &welcome.part {
                    EpochPart::Entry(entry) => {
                        self.entry(to, &welcome.header, entry, Some(&welcome.nonce))?;
                    }
                    EpochPart::Path(path) => {
                        require(path.r == welcome.nonce, "a path for another question")?;
                        self.path(to, &welcome.header, path, Some(&welcome.nonce))?;
                    }
                    EpochPart::Delta(_) => return Err("wraps in a welcome".to_string()),
                }
                self.waiting.remove(&(to, welcome.nonce.to_vec()));
                self.in_step.insert(to);
                Ok(())
            }
            Message::ShortRekey(short) => {
                // §7.6: the epoch before was made, and it and the wraps complete the header.
                let epoch = short.header.epoch;
                let before = Epoch { counter: epoch.counter.saturating_sub(1), ..epoch };
                let Some(before) = self.made.get(&before) else {
                    // Nobody knows the header that completes it, so nobody follows by it.
                    let unknown = self.run.silent.contains(&before) || self.unread.contains_key(&before);
                    require(unknown, "a short header that builds on no epoch")?;
                    require(self.run.group.opener(epoch) == Some(from), "another leader's short header")?;
                    let made = self.made.get(&epoch).map(|made| made.tag);
                    let known = made.unwrap_or(*self.unread.entry(epoch).or_insert(short.header.tag));
                    return require(known == short.header.tag, "two short headers for one epoch");
                };
                let header =
                    short.header.clone().rebuild(&before.core, &before.digest, &short.wraps).map_err(bad)?;
                self.epoch(&header)?;
                self.of_its_leader(from, &header)?;
                self.wraps(to, &header, &short.wraps, &Newcomers::default())
            }
            Message::Rekey(rekey) => {
                // §10.5: an edge shows a leader the newest header that it holds, and nobody anything else.
                if from.starts_with("edge-") {
                    let digest = rekey.header.digest(&self.run.deployment);
                    let given = self.given.get(&(from, rekey.header.core.epoch));
                    let has = given.is_some_and(|given| given.contains(&digest)) && rekey.part.is_none();
                    require(
                        has && self.run.group.leads(to),
                        "a header that the edge does not hold, or to no leader",
                    )?;
                }
                self.epoch(&rekey.header)?;
                if rekey.part.is_some() {
                    self.of_its_leader(from, &rekey.header)?;
                }
                match &rekey.part {
                    None => require(rekey.newcomers.is_empty(), "newcomers without wraps"),
                    Some(EpochPart::Entry(entry)) => self.entry(to, &rekey.header, entry, None),
                    Some(EpochPart::Path(path)) => self.path(to, &rekey.header, path, None),
                    Some(EpochPart::Delta(delta)) => self.wraps(to, &rekey.header, delta, &rekey.newcomers),
                }
            }
            Message::Ack(ack) => {
                // An edge that is not in step persists and acknowledges an epoch that it does not use yet.
                let given = self.given.get(&(from, ack.epoch)).ok_or("nobody gave it the key")?;
                let tagged = |digest: &&Digest| {
                    self.tag(from, ack.slot, &ack.tag, "ack", &[("digest", &digest[..])]).is_ok()
                };
                let digest = *given.iter().find(tagged).ok_or("its tag does not hold")?;
                self.follows(from, ack.epoch, digest)?;
                self.acknowledged.insert((from, ack.epoch));
                self.holds(from, ack.epoch, digest);
                Ok(())
            }
            Message::CatchUpRequest(question) => {
                require(question.group.as_bytes() == GROUP.as_bytes(), "another group")?;
                require(self.holds_or_persisted(from, &question.held), "not what it holds")?;
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
                if !self.members.contains(from) {
                    // §11: it is out and has not heard of it, and asks for the slot's next member.
                    let next: Vec<Node> = self.members_in(question.slot).collect();
                    self.misdirected.extend(next.into_iter().map(|member| (to, from, member)));
                }
                Ok(())
            }
            Message::CatchUpReply(answer) => {
                require(self.questions.remove(&answer.number[..]) == Some(to), "nobody asked that")?;
                let digest = self.epoch(&answer.header)?;
                self.of_its_leader(from, &answer.header)?;
                match &answer.part {
                    None => {}
                    Some(EpochPart::Entry(entry)) => self.entry(to, &answer.header, entry, None)?,
                    Some(EpochPart::Path(path)) => {
                        require(path.r == answer.number, "a path for another question")?;
                        self.path(to, &answer.header, path, None)?;
                    }
                    Some(EpochPart::Delta(_)) => return Err("wraps in an answer".to_string()),
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
                let q = ack.q.to_be_bytes();
                let known = self.tag(to, slot, &ack.tag, "spare_ack", &[("q", &q)]);
                known.or_else(|why| {
                    let tag = ("spare_ack", &[("q", &q[..])][..]);
                    require(self.tag_of_an_opening((from, to), &ack.tag, tag), &why)
                })
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
                self.verify(&leave.signature, key, label, &statement)?;
                self.going.insert(from);
                Ok(())
            }
            Message::EvictionNotice(notice) => {
                let told = notice.leader.encode();
                let signed = |leader: &&Node| self.keys.get(*leader).is_some_and(|key| key.encode() == told);
                let signer = self.run.group.leaders.iter().find(signed).ok_or("another leader")?;
                let key = &self.keys[signer];
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
                self.verify(&notice.signature, key, label, &statement)
            }
            Message::GroupMessage(message) => self.group_message(from, to, message),
            Message::EquivocationProof(proof) => self.proof(from, to, proof),
            Message::StandBy(question) => self.stand_by(from, to, question),
            Message::Replica(copy) => self.replica(from, to, copy),
            Message::RevocationList(list) => self.revocation_list(from, list),
            // Nothing of these is a term of the models: refusals, which nobody signs.
            _ => Ok(()),
        }
    }

    /// §21: a leader's message for a drone, or for all, that a relay has to hand on. It may never come there;
    /// the epoch that it is about was made.
    fn handed_to_a_relay(&mut self, from: Node, message: &Message<S>) -> Verdict {
        match message {
            Message::Welcome(welcome) => {
                self.epoch(&welcome.header)?;
                let asked = self.asked.keys().find(|(_, nonce)| nonce[..] == welcome.nonce);
                let (node, _) = asked.ok_or("nobody asked to join with that")?;
                let slot = match &welcome.part {
                    EpochPart::Entry(entry) => entry.slot,
                    EpochPart::Path(path) => path.slot,
                    EpochPart::Delta(_) => return Err("wraps in a welcome".to_string()),
                };
                self.rosters.insert((from, slot), node);
                self.of_its_leader(from, &welcome.header)
            }
            Message::Rekey(rekey) => {
                self.epoch(&rekey.header)?;
                if rekey.part.is_some() { self.of_its_leader(from, &rekey.header) } else { Ok(()) }
            }
            Message::CatchUpReply(answer) => {
                self.epoch(&answer.header)?;
                self.of_its_leader(from, &answer.header)
            }
            _ => Ok(()),
        }
    }

    /// A signature under a drone's key. What was verified once is remembered, because a test checks the same
    /// run hundreds of times with one step changed.
    fn verify(
        &self,
        signature: &Signature<S>,
        key: &DronePublicKey<S>,
        label: Label,
        statement: &[u8],
    ) -> Verdict {
        let deployment = &self.run.deployment;
        let mut all = Writer::new();
        all.lp(deployment.master().as_bytes()).lp(&key.encode()).lp(label.as_str().as_bytes());
        let all = all.lp(&signature.encode()).lp(statement).finish();
        let held = remembered(all, || signature.verify(deployment, key, label, statement).is_ok());
        require(held, "a signature that does not hold")
    }

    /// A nonce that nobody used before.
    fn fresh(&mut self, from: Node, nonce: &[u8]) -> Verdict {
        require(self.nonces.insert(nonce.to_vec(), from).is_none(), "a nonce that was used")
    }

    /// A hello that the adversary sends is answered as any other, and a cookie that it sends is shown, because
    /// nothing authenticates these. A member's question that it hands on moves the member's place (§11); nothing
    /// else has a consequence.
    fn injected(&mut self, to: Node, over: Node, of: Option<Node>, bytes: &[u8]) {
        self.misdirected.extend(of.map(|of| (to, over, of)));
        let Ok(message) = wire::decode(&self.run.deployment, bytes) else { return };
        // What a leader signed is as good as from that leader.
        let _ = self.show_headers(to, &message);
        match &*message {
            Message::EnrolHello(hello) => {
                self.injected.insert(hello.nonce.to_vec());
            }
            Message::JoinHello(hello) => {
                self.injected.insert(hello.nonce.to_vec());
            }
            message @ Message::Extension(_) => {
                if let Some(Ok(message)) = message.extension() {
                    self.injected_admission(to, &message);
                }
            }
            Message::EnrolCookie(cookie) => {
                self.cookies.insert(cookie.cookie.to_vec(), (to, cookie.nonce.to_vec()));
            }
            Message::JoinChallenge(challenge) => {
                self.misleading.insert((challenge.challenge.to_vec(), challenge.leader.encode()));
                // Whose it is it stays, to whomever it is repeated.
                let shown = (to, challenge.nonce.to_vec());
                self.cookies.entry(challenge.challenge.to_vec()).or_insert(shown);
            }
            // §11: a question that no tag authenticates is answered, too, seldom and with nothing but what the
            // slot's member opens.
            Message::CatchUpRequest(question) if of.is_none() => {
                let had = |pairs: &Vec<Pair>| pairs.iter().any(|pair| pair.slot == question.slot);
                let holders =
                    self.pairs.iter().filter(|(_, pairs)| had(pairs)).map(|(node, _)| (to, over, *node));
                self.misdirected.extend(holders);
            }
            _ => {}
        }
    }

    /// §21.1: a hostile relay swaps, repeats and alters. Where its leader may have sent the message to this drone, it
    /// did; anything else has no consequence.
    fn handed(&mut self, from: Node, to: Node, bytes: &[u8]) {
        let before = self.clone();
        if self.sent(from, to, bytes).is_err() {
            *self = before;
        }
    }

    /// A cookie answers a hello.
    fn cookie(&mut self, to: Node, nonce: &[u8], cookie: &[u8]) -> Verdict {
        if self.nonces.get(nonce) != Some(&to) {
            return require(self.injected.contains(nonce), "no hello before it");
        }
        self.cookies.insert(cookie.to_vec(), (to, nonce.to_vec()));
        Ok(())
    }

    /// A node has one key, of its own name.
    fn key(&mut self, of: Node, key: &DronePublicKey<S>) -> Verdict {
        require(key.identity.name.as_bytes() == self.run.group.name_of(of).as_bytes(), "another's key")?;
        if let Some(known) = self.keys.get(of) {
            return require(known.encode() == key.encode(), "another key than before");
        }
        self.issued_key(of, key)?;
        self.keys.insert(of, key.clone());
        Ok(())
    }

    /// §6.1: signed, for a challenge that is taken once.
    fn join_request(&mut self, from: Node, to: Node, request: &JoinRequest) -> Verdict {
        let answered = self.cookies.remove(&request.challenge[..]);
        require(
            answered == Some((from, request.nonce.to_vec())),
            "not its challenge, or one that was taken",
        )?;
        let decoded = request.decode::<S>().map_err(bad)?;
        self.key(from, &decoded.drone)?;
        self.spare(from, &decoded.spare)?;
        let offer = self.offer(from, to, request)?;
        let leader = self.keys.get(to).ok_or("nobody knows the leader's key")?;
        let (group, leader, drone) =
            (lp(request.group.as_bytes()), lp(&leader.encode()), lp(&decoded.drone.encode()));
        let (q, spare) = (decoded.spare.q.to_be_bytes(), lp(&decoded.spare.signature.encode()));
        let mut values: Vec<(&str, &[u8])> = vec![
            ("group", &group),
            ("leader", &leader),
            ("drone", &drone),
            ("n_l", &request.challenge),
            ("n_e", &request.nonce),
            ("e", decoded.ephemeral.as_bytes()),
            ("q", &q),
            ("e_q", decoded.spare.point.as_bytes()),
            ("spare", &spare),
        ];
        // §24.4: with a second factor the statement goes on.
        values.extend(offer.as_ref().map(|offer| ("offer", &offer[..])));
        let name = if offer.is_some() { "join_with" } else { "join" };
        let signed = (&decoded.signature, &decoded.drone);
        if self.names_its_leader((name, &values), signed, &request.challenge)?.is_none() {
            return Ok(());
        }
        // §24.7: it asks for no membership.
        if matches!(request.kem, Some(KemOffer::Ahead { .. })) {
            return Ok(());
        }
        let e = decoded.ephemeral.as_bytes().to_vec();
        self.asked.insert((from, request.nonce.to_vec()), e);
        self.waiting.insert((from, request.nonce.to_vec()));
        Ok(())
    }

    /// A signature over a statement that names the leader, to whom it goes. `None` if it names another, under a challenge
    /// that was altered on its way: nobody signs challenges, and no leader takes that.
    fn names_its_leader(
        &self,
        (name, values): (&str, Values<'_>),
        (signature, key): (&Signature<S>, &DronePublicKey<S>),
        challenge: &[u8],
    ) -> Verdict<Option<()>> {
        let (label, statement) = self.table.statement(name, values);
        let Err(why) = self.verify(signature, key, label, &statement) else { return Ok(Some(())) };
        let named = self.misleading.iter().filter(|(of, _)| of[..] == *challenge);
        let misled = named.map(|(_, leader)| lp(leader)).any(|leader| {
            let other = values.iter().map(|(field, value)| match *field {
                "leader" => (*field, &leader[..]),
                _ => (*field, *value),
            });
            let (label, statement) = self.table.statement(name, &other.collect::<Vec<_>>());
            self.verify(signature, key, label, &statement).is_ok()
        });
        if misled { Ok(None) } else { Err(why) }
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
        self.verify(&spare.signature, key, label, &statement)?;
        let point = spare.point.as_bytes().to_vec();
        let known = self.spares.entry((from, spare.q)).or_insert_with(|| point.clone());
        require(*known == point, "two points of one number")
    }

    /// §7.1: a header, signed by the group's leader, of an epoch that is known or the next one. Gives D.
    fn epoch(&mut self, header: &Header<S>) -> Verdict<Digest> {
        let (core, epoch) = (&header.core, header.core.epoch);
        // §7.3: the signer leads this group under the term's ordinal.
        let opener = self.run.group.opener(epoch).ok_or("another ordinal")?;
        let twice = self.is_made_twice(epoch);
        if twice {
            self.one_of_two_keys(opener, core)?;
        } else {
            self.key(opener, &core.leader)?;
        }
        let leader = &core.leader;
        require(core.group.as_bytes() == GROUP.as_bytes(), "not its leader")?;
        require(core.strategy == self.run.group.strategy, "another strategy")?;
        let binds = core.strategy == StrategyKind::Tree || header.entries_root == [0; 32];
        require(binds, "an entries_root without wraps")?;
        let d0 = core.digest(&self.run.deployment);
        let values: Values<'_> = &[("d0", &d0), ("entries_root", &header.entries_root), ("tag", &header.tag)];
        let digest = self.table.hash("digest", values);
        let (label, statement) = self.table.statement("header", &[("digest", &digest)]);
        self.verify(&header.signature, leader, label, &statement)?;
        if let Some(made) = self.made.get(&epoch) {
            if made.digest != digest {
                require(twice, "two headers for one epoch")?;
                self.made_twice(header, d0, digest);
            }
            return Ok(digest);
        }
        let (root, tag) = (header.entries_root, header.tag);
        let made = Made { core: core.clone(), digest, d0, root, tag, key: None };
        if twice {
            // It says what it likes of who is in the group, and of its terms.
            self.made.insert(epoch, made);
            return Ok(digest);
        }
        if let Some((newest, _)) = self.made.last_key_value() {
            let before = Epoch { counter: epoch.counter.saturating_sub(1), ..epoch };
            let next = match core.kind {
                // §A5.2: its leader's term opened with nobody, and so for nobody to see.
                EpochKind::Rekey if self.run.group.anonymous && newest.term < epoch.term => {
                    epoch.counter == 2 || self.run.silent.contains(&before)
                }
                // Of an epoch that nobody was sent, or of which nobody knows more than its short header, nobody knows D.
                EpochKind::Rekey => match self.made.get(&before) {
                    Some(made) => core.prev == made.digest,
                    None => self.run.silent.contains(&before) || self.unread.contains_key(&before),
                },
                // §10.4: of two leaders that do not hear each other each goes on with its own term.
                EpochKind::Open => {
                    let of_leader = |made: &&Epoch| made.ordinal() == epoch.ordinal();
                    let former = self.made.keys().rev().find(of_leader);
                    // A leader that nobody could hear may have gone on before it shows how the term was opened.
                    let late = self.run.silent.contains(&epoch);
                    let newer =
                        |former: &Epoch| former.term < epoch.term || late && former.term == epoch.term;
                    epoch.counter == 1 && former.is_none_or(newer)
                }
            };
            require(next, "no epoch that follows the newest one")?;
        }
        let short = self.unread.get(&epoch).is_none_or(|tag| *tag == header.tag);
        require(short, "another header than the short one of the epoch")?;
        let after = Epoch { counter: epoch.counter + 1, ..epoch };
        let fits = self.made.get(&after).is_none_or(|after| after.core.prev == digest);
        require(fits, "the epoch after it follows another")?;
        self.counts(header)?;
        if self.run.group.anonymous && self.made.keys().all(|made| made.term < epoch.term) {
            // §A5.2: with a term its leader's anonymous members are forgotten.
            self.members.clear();
        }
        for run in core.removed.iter() {
            let Some(holder) = self.holder(epoch, run) else {
                // Its leader died before it welcomed whoever it gave the slot to, who asks again.
                let unheard = self.seated.contains_key(&run) && !self.waiting.is_empty();
                require(unheard, "nobody is in the slot that is removed")?;
                self.seated.remove(&run);
                self.taken_back.insert(run, epoch);
                continue;
            };
            // §6.2: a join by a current member is a leave and a join.
            let rejoins = self.waiting.iter().any(|(node, _)| *node == holder);
            let wanted = rejoins || self.going.contains(holder) || self.outlives(opener, holder, run);
            require(wanted, "nobody wanted it to go")?;
            // A member without a name that came back has another slot, and its former one is nobody's.
            if !self.run.group.anonymous || self.slot_of(holder) == Some(run) {
                self.members.remove(holder);
                self.absent.remove(holder);
            }
            self.seated.remove(&run);
            self.taken_back.insert(run, epoch);
        }
        for slot in core.added.iter() {
            let newest = self.seated.entry(slot).or_insert(epoch);
            *newest = (*newest).max(epoch);
        }
        for slot in core.absent.iter() {
            // §9.1: who has no unused spare point at the new leader, or (§24.3) no κ with it, joins again.
            require(core.kind == EpochKind::Open, "absent members without a new term")?;
            let holder = self.holder(epoch, slot).ok_or("nobody is in the slot that is absent")?;
            self.members.remove(holder);
            self.absent.insert(holder);
        }
        self.made.insert(epoch, made);
        Ok(digest)
    }

    /// Returns true if the period is over for which a member without a name was admitted to this slot.
    fn outlives(&self, leader: Node, member: Node, slot: Slot) -> bool {
        let of_slot = |pair: &&Pair| pair.slot == slot;
        let pair = self.pairs.get(member).and_then(|pairs| pairs.iter().rev().find(of_slot));
        pair.and_then(|pair| pair.period).is_some_and(|period| self.over.contains(&(leader, period)))
    }

    /// Secrets W of the runs by which drones were admitted.
    pub(crate) fn admitted(&self) -> impl Iterator<Item = &Secret<32>> {
        self.admissions.sessions.iter().map(|session| &session.secret)
    }

    /// The key of a node after an epoch, if anybody was given it.
    pub(crate) fn node(&self, epoch: Epoch, (level, index): (u8, u32)) -> Option<&Secret<32>> {
        self.nodes.get(&(epoch, level, index))
    }

    /// Keys of an epoch come from whoever opened its term.
    fn of_its_leader(&self, from: Node, header: &Header<S>) -> Verdict {
        let leader = self.run.group.opener(header.core.epoch);
        require(leader == Some(from), "keys from another than the term's leader")
    }

    /// Member or absent member with this slot; else the one that has it in the copy from which the leader of
    /// this epoch opened its term, or that had it last: a message about a former holder may be under way, or
    /// the copy older than the slot's next holder.
    fn holder(&self, epoch: Epoch, slot: Slot) -> Option<Node> {
        let now = self.members_in(slot).next();
        let copied = || {
            let leader = self.run.group.opener(epoch)?;
            self.rosters.get(&(leader, slot)).copied()
        };
        let former = || {
            let had = |(node, pairs): (&Node, &Vec<Pair>)| {
                let begun = pairs.iter().filter(|pair| pair.slot == slot).map(|pair| pair.begun).max()?;
                Some((begun, *node))
            };
            self.pairs.iter().filter_map(had).max().map(|(_, node)| node)
        };
        now.or_else(copied).or_else(former)
    }

    /// Members and absent members with this slot.
    fn members_in(&self, slot: Slot) -> impl Iterator<Item = Node> {
        let all = self.members.union(&self.absent).copied();
        all.filter(move |member| self.slot_of(member) == Some(slot))
    }

    fn slot_of(&self, member: Node) -> Option<Slot> {
        self.pairs.get(member)?.last().map(|pair| pair.slot)
    }

    fn newest_pair(&self, member: Node) -> Verdict<&Pair> {
        Ok(self.pairs.get(member).and_then(|pairs| pairs.last()).ok_or("it has no key with the leader")?)
    }

    /// A tag under A of a pair that the member has or had: after a term opened, it may know the former one
    /// alone.
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
                (Some(q), None) => {
                    vec![(Some(q), self.spares.get(&(to, q)).ok_or("it showed no such point")?.clone())]
                }
                (None, _) => self.one_time_points(to, nonce).into_iter().map(|point| (None, point)).collect(),
                (Some(_), Some(_)) => return Err("a spare point in a welcome".to_string()),
            };
            self.candidates(to, &header.core, entry.slot, &points)?
        } else {
            self.pairs.get(to).ok_or("it has no key with the leader")?.clone()
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
        require(
            header.core.strategy == StrategyKind::Flat || header.core.kind == EpochKind::Open,
            "an entry of a tree that goes on",
        )?;
        if self.made.get(&epoch).is_some_and(|made| made.d0 == d0) {
            self.sealed.entries.push((epoch, entry.slot, entry.wrap));
        }
        self.give(to, header, &pair, key, None, entry.q.is_none())
    }

    /// W of the pair in an epoch of its term.
    fn stepped(&self, pair: &Pair, epoch: Epoch) -> Option<Secret<32>> {
        let steps =
            epoch.counter.checked_sub(pair.begun.counter).filter(|_| pair.begun.term == epoch.term)?;
        Some((0..steps).fold(pair.w.clone(), |w, _| self.table.prf("step", &w, &[])))
    }

    /// A member has the keys of an epoch: all who have them have the same.
    fn give(
        &mut self,
        to: Node,
        header: &Header<S>,
        pair: &Pair,
        key: Secret<32>,
        path: Option<Vec<Secret<32>>>,
        joins: bool,
    ) -> Verdict {
        let (epoch, slot) = (header.core.epoch, pair.slot);
        let w = self.stepped(pair, epoch).ok_or("a pair of another term")?;
        let digest = header.digest(&self.run.deployment);
        let made = self.header_mut(epoch, &digest).ok_or("no such epoch")?;
        require(
            made.key.as_ref().is_none_or(|known| known.expose() == key.expose()),
            "two keys of one epoch",
        )?;
        made.key = Some(key);
        for (level, key) in (1..).zip(path.iter().flatten()) {
            let known = self.nodes.entry((epoch, level, slot >> level)).or_insert_with(|| key.clone());
            require(known.expose() == key.expose(), "two keys of one node")?;
        }
        let twice = self.is_made_twice(epoch);
        let first = (pair.w.clone(), pair.begun.counter);
        let state = self.states.entry((to, epoch)).or_insert(Held { slot, w, first, path: None });
        state.path = path.or_else(|| state.path.take());
        if header.core.adds(slot) {
            let pairs = self.pairs.entry(to).or_default();
            let known = |known: &Pair| known.begun == pair.begun && known.w.expose() == pair.w.expose();
            if !pairs.iter().any(known) {
                pairs.push(pair.clone());
                // Numbers rise within a membership: the next one has another A.
                if joins {
                    self.newest_question.remove(to);
                }
                if !twice {
                    self.going.remove(to);
                }
            }
            // A message sent once more about an epoch before the slot was taken back makes no member again.
            let of_leader = |made: &&Epoch| made.ordinal() == epoch.ordinal();
            let newest = self.made.keys().rev().find(of_leader).is_some_and(|made| made.term == epoch.term);
            if newest && !twice && self.taken_back.get(&slot).is_none_or(|taken| *taken <= epoch) {
                self.members.insert(to);
                self.absent.remove(to);
            }
        }
        self.given.entry((to, epoch)).or_default().insert(digest);
        Ok(())
    }

    /// Pairs that a member may have with its leader in an epoch: the one it has, or one that the epoch makes,
    /// with a point of a request to join, or with a spare one where a term opens.
    fn pairs_for(
        &self,
        to: Node,
        header: &Header<S>,
        slot: Slot,
        nonce: Option<&[u8]>,
    ) -> Verdict<Vec<Pair>> {
        let core = &header.core;
        let of_term = |pair: &&Pair| {
            pair.begun.term == core.epoch.term && (pair.begun == core.epoch || !core.adds(slot))
        };
        let known: Vec<Pair> =
            self.pairs.get(to).into_iter().flatten().rev().filter(of_term).cloned().collect();
        if !known.is_empty() {
            return Ok(known);
        }
        require(core.adds(slot), "it has no key with the leader")?;
        if core.kind == EpochKind::Rekey {
            let points: Vec<_> =
                self.one_time_points(to, nonce).into_iter().map(|point| (None, point)).collect();
            return self.candidates(to, core, slot, &points);
        }
        self.candidates(to, core, slot, &self.spare_points(to))
    }

    /// The spare points that a node has shown, by their numbers.
    fn spare_points(&self, of: Node) -> Vec<(Option<u64>, Vec<u8>)> {
        let spares = self.spares.range((of, 0)..=(of, u64::MAX));
        spares.map(|((_, q), point)| (Some(*q), point.clone())).collect()
    }

    /// §9.1: whether this is a tag of a leader that has opened a term with a spare point of the member, of which the
    /// member was sent nothing yet.
    fn tag_of_an_opening(
        &self,
        (leader, member): (Node, Node),
        tag: &[u8; 32],
        (name, values): (&str, Values<'_>),
    ) -> bool {
        let opened = |(epoch, made): &(&Epoch, &Made)| {
            made.core.kind == EpochKind::Open && self.run.group.opener(**epoch) == Some(leader)
        };
        let Some((_, made)) = self.made.iter().rev().find(opened) else { return false };
        let copied = self.rosters.iter().filter(|((of, _), holder)| *of == leader && **holder == member);
        let slots = copied.map(|((_, slot), _)| *slot).chain(self.slot_of(member));
        let slots = slots.filter(|slot| made.core.adds(*slot)).collect::<BTreeSet<_>>();
        let points = self.spare_points(member);
        slots.into_iter().any(|slot| {
            let pairs = self.candidates(member, &made.core, slot, &points).unwrap_or_default();
            pairs.iter().any(|pair| self.table.prf(name, &pair.a, values).expose() == tag)
        })
    }

    /// §8.2, 6: a path that opens with W of the epoch, whose root gives the header's key.
    fn path(&mut self, to: Node, header: &Header<S>, path: &PathMessage, nonce: Option<&[u8]>) -> Verdict {
        let (core, epoch) = (&header.core, header.core.epoch);
        require(core.strategy == StrategyKind::Tree, "a path without a tree")?;
        let made = self.made.get(&epoch).ok_or("no such epoch")?;
        let (digest, d0) = (made.digest, made.d0);
        let bytes = path.encode();
        let aad = [&digest[..], &path.slot.to_be_bytes()].concat();
        let opened = |pair: Pair| {
            let w = self.stepped(&pair, epoch).filter(|_| pair.slot == path.slot)?;
            let key = self.table.prf("path", &w, &[("digest", &digest), ("r", &path.r)]);
            Some((pair, aead::open(&key, &[0; 12], &aad, &bytes[20..]).ok()?))
        };
        let (pair, text) = self
            .pairs_for(to, header, path.slot, nonce)?
            .into_iter()
            .find_map(opened)
            .ok_or("a path under no key of the member's")?;
        let keys: Vec<_> = text.as_chunks::<32>().0.iter().map(|key| Secret::new(*key)).collect();
        let (key, keys) = keys.split_last().ok_or("an empty path")?;
        require(keys.len() == usize::from(core.height), "a path of another height")?;
        let root = keys.last().ok_or("a path without a root")?;
        let computed = self.table.prf("group_key", root, &[("d0", &d0)]);
        require(computed.expose() == key.expose(), "not the key that the root gives")?;
        self.confirms(header, &d0, key)?;
        self.sealed.paths.push((epoch, path.slot, bytes));
        self.give(to, header, &pair, key.clone(), Some(keys.to_vec()), nonce.is_some())
    }

    /// §7.1: the tag is the key's.
    fn confirms(&self, header: &Header<S>, d0: &Digest, key: &Secret<32>) -> Verdict {
        let tag = self.table.prf("confirm", key, &[("d0", d0), ("entries_root", &header.entries_root)]);
        require(*tag.expose() == header.tag, "a key of which the tag is not")
    }

    /// §8.4: wraps that the header binds. A member that has the epoch before, or begins with this one,
    /// follows.
    fn wraps(&mut self, to: Node, header: &Header<S>, delta: &Delta, newcomers: &Newcomers) -> Verdict {
        let (core, epoch) = (&header.core, header.core.epoch);
        let wraps = Wraps::read(delta.as_bytes()).ok_or("no wraps")?;
        require(wraps.root(self.table) == Some(header.entries_root), "wraps that the header does not bind")?;
        require(wraps.height == core.height, "wraps of another height")?;
        let known: BTreeSet<_> =
            self.sealed.wraps.iter().map(|(at, parent, child, _)| (*at, *parent, *child)).collect();
        let all =
            wraps.all().into_iter().filter(|(parent, child, _)| !known.contains(&(epoch, *parent, *child)));
        self.sealed.wraps.extend(all.map(|(parent, child, wrap)| (epoch, parent, child, wrap)));
        if !to.starts_with("edge-") || self.states.get(&(to, epoch)).is_some_and(|held| held.path.is_some()) {
            return Ok(());
        }
        // §6.1: a newcomer finds its n_e in the list, which nobody signs; the tag shows that the slot is its
        // own.
        let asked = |(slot, start): (Slot, &[u8; 8])| {
            let mine = self.waiting.iter().find(|(node, nonce)| *node == to && nonce.starts_with(start))?;
            Some((slot, mine.1.clone()))
        };
        let joins = newcomers.iter().find_map(asked);
        let former = Epoch { counter: epoch.counter - 1, ..epoch };
        let (slot, before) = match (&joins, core.kind) {
            (Some((slot, _)), _) => (*slot, None),
            (None, EpochKind::Open) => match self.slot_of(to) {
                // §9.3: who left, or was evicted, and has not heard that it is out, follows a deputy that has not either.
                Some(slot) if core.adds(slot) && core.point.is_some() => (slot, None),
                Some(slot) => return self.leaves_out(header, &wraps, slot),
                None => return Ok(()),
            },
            (None, EpochKind::Rekey) => {
                match self.states.get(&(to, former)).map(|held| (held.slot, held.path.clone())) {
                    Some((slot, Some(path))) => (slot, Some(path)),
                    // It asks for its path.
                    _ => return Ok(()),
                }
            }
        };
        let Some(branch) = wraps.branch(slot) else { return Ok(()) };
        let lowest = (1..branch.len()).find(|level| branch[*level].refreshed);
        if lowest.is_some_and(|level| branch[level - 1].wrap.is_none()) {
            // §8.3: that is the leader's word that it is out. §10.2: a deputy whose copy is older opens a term
            // without it.
            let leader = self.run.group.opener(epoch);
            let joined_elsewhere = self.run.group.opener(self.newest_pair(to)?.begun) != leader;
            let is_out = !self.members.contains(to) || self.going.contains(to);
            let unknown = core.kind == EpochKind::Open && (joined_elsewhere || is_out);
            return require(
                core.removed.contains(slot) || unknown,
                &format!("wraps of {epoch:?} without {to} in slot {slot}"),
            );
        }
        let d0 = core.digest(&self.run.deployment);
        let nonce = joins.as_ref().map(|(_, nonce)| &nonce[..]);
        let climbed = self.pairs_for(to, header, slot, nonce)?.into_iter().find_map(|pair| {
            let w = self.stepped(&pair, epoch)?;
            let path = self.climb(&branch, slot, &d0, &w, before.as_deref())?;
            let key = self.table.prf("group_key", path.last()?, &[("d0", &d0)]);
            self.confirms(header, &d0, &key).ok()?;
            Some((pair, key, path))
        });
        let Some((pair, key, path)) = climbed else {
            // §10.2: it is out, or a leader of a later term gave the slot away, to which the deputy goes on.
            let begun = self.newest_pair(to)?.begun;
            let given_away = self.seated.get(&slot).is_some_and(|given| given.term > begun.term);
            let out = given_away || !self.members.contains(to);
            require(core.kind == EpochKind::Open && out, "the wraps give no key of this epoch")?;
            return self.leaves_out(header, &wraps, slot);
        };
        if let Some((_, nonce)) = joins {
            self.waiting.remove(&(to, nonce));
            self.in_step.insert(to);
        }
        let joins = core.kind == EpochKind::Rekey && core.adds(slot);
        self.give(to, header, &pair, key, Some(path), joins)
    }

    /// §8.4, §9.1: wraps of an opening go to everybody who listens, also to who has left, was evicted or is
    /// absent. They have nothing for its slot, unless the slot is another member's now, or the copy from which the
    /// leader opened the term is older than that.
    fn leaves_out(&self, header: &Header<S>, wraps: &Wraps, slot: Slot) -> Verdict {
        let copied = self.run.group.opener(header.core.epoch);
        let copied = copied.is_some_and(|leader| self.rosters.contains_key(&(leader, slot)));
        let added = header.core.adds(slot) && header.core.point.is_some();
        let taken = added && (self.seated.contains_key(&slot) || copied);
        let wrap = wraps.branch(slot).is_some_and(|branch| branch[0].wrap.is_some());
        require(taken || !wrap, "a wrap of an opening for a slot that nobody has")
    }

    /// §8.2: the keys above a leaf after an epoch, from its W and the keys before.
    fn climb(
        &self,
        branch: &[crate::wraps::Child],
        slot: Slot,
        d0: &Digest,
        w: &Secret<32>,
        before: Option<&[Secret<32>]>,
    ) -> Option<Vec<Secret<32>>> {
        let (mut below, mut seed, mut keys) = (w.clone(), None, Vec::new());
        for level in 1..branch.len() {
            let (v, c) = (node(level as u8, slot >> level), node(level as u8 - 1, slot >> (level - 1)));
            let key = if branch[level].refreshed {
                let own = match branch[level - 1].wrap {
                    Some(wrap) => {
                        self.table.prf("wrap_node", &below, &[("d0", d0), ("v", &v), ("c", &c)]).unmask(&wrap)
                    }
                    None => self.table.prf("up", seed.as_ref()?, &[("node", &v)]),
                };
                let key = self.table.prf("node", &own, &[("node", &v)]);
                seed = Some(own);
                key
            } else {
                seed = None;
                before?.get(level - 1)?.clone()
            };
            let steps = branch[level].wrap.is_some() || branch[level].added;
            below = key.clone();
            keys.push(if steps { self.table.prf("node_step", &key, &[("node", &v)]) } else { key });
        }
        Some(keys)
    }

    /// §10.1: a deputy's question, signed to the leader that it asks, under a challenge of that one, with a
    /// rising number.
    fn stand_by(&mut self, from: Node, to: Node, question: &StandBy) -> Verdict {
        let session = (from, question.nonce.to_vec());
        let known = self.cookies.get(&question.challenge[..]) == Some(&(from, question.nonce.to_vec()));
        require(known, "not its challenge")?;
        require(question.group.as_bytes() == GROUP.as_bytes(), "another group")?;
        let before = self.stands_by.insert(session, question.number);
        require(before.is_none_or(|before| before < question.number), "its number does not rise")?;
        let (deputy, signature) = question.decode::<S>().map_err(bad)?;
        self.key(from, &deputy)?;
        if question.held.counter > 0 {
            let own = self.run.silent.contains(&question.held);
            let made = self.made.get(&question.held);
            require(made.is_some() || own, "it holds an epoch that nobody made")?;
            require(made.is_none_or(|made| made.digest == question.digest), "it holds another header")?;
            let opened = self.run.group.opener(question.held) == Some(from);
            require(opened || self.copied.contains(&(from, question.held)), "nobody sent it a copy of that")?;
        }
        let leader = self.keys.get(to).ok_or("nobody knows the leader's key")?;
        let held = [
            &question.received.to_be_bytes()[..],
            &question.held.term.to_be_bytes(),
            &question.held.counter.to_be_bytes(),
            &question.digest,
        ]
        .concat();
        let values: &[(&str, &[u8])] = &[
            ("group", &lp(question.group.as_bytes())),
            ("leader", &lp(&leader.encode())),
            ("deputy", &lp(&question.deputy)),
            ("nonce", &question.nonce),
            ("challenge", &question.challenge),
            ("number", &question.number.to_be_bytes()),
            ("held", &held),
        ];
        let signed = (&signature, &deputy);
        if self.names_its_leader(("stand_by", values), signed, &question.challenge)?.is_none() {
            return Ok(());
        }
        self.copies.insert((from, to, question.nonce.to_vec(), question.number));
        Ok(())
    }

    /// §10.2: a copy answers one question; its points are their members', its slots those that members have.
    fn replica(&mut self, from: Node, to: Node, copy: &Replica<S>) -> Verdict {
        require(
            self.copies.remove(&(to, from, copy.nonce.to_vec(), copy.number)),
            "nobody asked that, or it was answered",
        )?;
        let digest = self.epoch(&copy.header)?;
        let (leader, deputy) =
            self.keys.get(from).zip(self.keys.get(to)).ok_or("nobody knows the keys of these leaders")?;
        let values: Values<'_> = &[
            ("group", &lp(GROUP.as_bytes())),
            ("leader", &lp(&leader.encode())),
            ("deputy", &lp(&deputy.encode())),
            ("nonce", &copy.nonce),
            ("number", &copy.number.to_be_bytes()),
            ("digest", &digest),
            ("chunk", &self.table.hash("chunk", &[("slots", &lp(&copy.chunk))])),
        ];
        let (label, statement) = self.table.statement("replica", values);
        self.verify(&copy.signature, leader, label, &statement)?;
        if !copy.chunk.is_empty() {
            for seat in ReplicaChunk::<S>::decode(&copy.chunk).map_err(bad)?.seats {
                self.rosters.remove(&(to, seat.slot));
                let Some(holder) = seat.holder else { continue };
                let node = self.keys.iter().find(|(_, key)| key.encode() == holder.encode());
                let node = *node.ok_or("a slot of a drone that never asked")?.0;
                let ever =
                    self.pairs.get(node).is_some_and(|pairs| pairs.iter().any(|pair| pair.slot == seat.slot));
                require(
                    ever || self.asked.keys().any(|(asked, _)| *asked == node),
                    "a slot that the member never had",
                )?;
                self.rosters.insert((to, seat.slot), node);
                if let Some(spare) = seat.spare {
                    let point = self.spares.get(&(node, spare.q));
                    require(
                        point.is_some_and(|point| point == spare.point.as_bytes()),
                        "a point that it never showed",
                    )?;
                }
            }
        }
        self.copied.insert((to, copy.header.core.epoch));
        Ok(())
    }

    /// E_now of the request that a welcome answers; of all of its requests where another message repeats
    /// that.
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
        core: &HeaderCore<S>,
        slot: Slot,
        points: &[(Option<u64>, Vec<u8>)],
    ) -> Verdict<Vec<Pair>> {
        let v = core.point.as_ref().ok_or("no point V")?;
        let p_pub = [lp(S::ID.as_bytes()), self.run.deployment.master().as_bytes().to_vec()].concat();
        let (group, leader) = (lp(core.group.as_bytes()), core.leader.encode());
        let (term, counter) = (core.epoch.term.to_be_bytes(), core.epoch.counter.to_be_bytes());
        let shared: Vec<(&str, &[u8])> = vec![
            ("p_pub", &p_pub),
            ("group", &group),
            ("term", &term),
            ("counter", &counter),
            ("v", v.as_bytes()),
            ("leader", &leader),
        ];
        let pair = |(w, factor): (Secret<32>, Option<Factor>)| {
            let a = self.table.prf("auth", &w, &[]);
            Pair { w, a, begun: core.epoch, slot, factor, period: None }
        };
        if self.run.group.anonymous {
            let shared = self.table.hash("shared", &shared);
            let mine = self.admissions.sessions.iter().filter(|session| session.node == to);
            let started = mine.map(|session| {
                let values: Values<'_> =
                    &[("shared", &shared), ("pseudonym", &session.pseudonym), ("slot", &slot.to_be_bytes())];
                let w = extract(&self.table.hash("anonymous", values), session.secret.expose());
                Pair { period: Some(session.slots), ..pair((w, None)) }
            });
            return Ok(started.collect());
        }
        let key = self.keys.get(to).ok_or("nobody knows its key")?.encode();
        let mut pairs = Vec::new();
        for (q, e) in points {
            let (slot, q) = (slot.to_be_bytes(), q.unwrap_or(0).to_be_bytes());
            let mut values = shared.clone();
            values.extend([("drone", &key[..]), ("slot", &slot), ("q", &q), ("e", e)]);
            let context = self.table.hash("pair", &values);
            let secrets = self.run.secrets.iter();
            pairs.extend(secrets.flat_map(|secret| self.starts(to, core, &context, secret)).map(&pair));
        }
        Ok(pairs)
    }

    /// §13: sealed under the key of an epoch that its sender holds and is in step with, once.
    fn group_message(&mut self, from: Node, to: Node, message: &GroupMessage) -> Verdict {
        let frame = &message.frame;
        let opener = self.run.group.opener(message.epoch) == Some(from);
        if opener && self.run.silent.contains(&message.epoch) && !self.made.contains_key(&message.epoch) {
            // A leader without members speaks under an epoch of which nobody knows D.
            require(message.group.as_bytes() == GROUP.as_bytes(), "another group")?;
            return require(
                frame.slot == LEADER_SLOT && message.source.is_some(),
                "not the leader's slot, or not signed",
            );
        }
        let made = self.made.get(&message.epoch).ok_or("no such epoch")?;
        let held = self.held.get(from).map(|(_, digest)| digest);
        let made = held.and_then(|digest| self.header(message.epoch, digest)).unwrap_or(made);
        let (digest, key) = (made.digest, made.key.clone());
        require(message.group.as_bytes() == GROUP.as_bytes(), "another group")?;
        if self.run.group.leads(from) {
            require(
                frame.slot == LEADER_SLOT
                    && message.source.is_some()
                    && self.run.group.opener(message.epoch) == Some(from),
                "not the leader's slot, or not signed",
            )?;
        } else {
            require(
                self.held.get(from).is_some_and(|(_, held)| *held == digest),
                "not the epoch that it holds",
            )?;
            require(self.activated.contains(&(from, message.epoch)), "a key that it does not use")?;
            require(self.opens(from, message.epoch, &digest), "a key that it has erased")?;
            require(self.in_step.contains(from), "it is not in step")?;
            require(self.newest_pair(from)?.slot == frame.slot, "another slot")?;
        }
        let (slot, start) =
            (frame.slot.to_be_bytes(), [&frame.boot_no.to_be_bytes()[..], &frame.salt].concat());
        // A leader without members has nobody who opens what it says; its signature binds that, too.
        let alone = key.is_none() && self.run.group.leads(from);
        let text = match &key {
            Some(key) => self.opened_message(key, &digest, message)?,
            None => {
                require(alone, "nobody was given its key")?;
                Vec::new()
            }
        };
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
            self.verify(&signature, &drone, label, &statement)?;
        }
        // Each receiver is sent the same bytes once.
        let number =
            [&slot[..], &start, &frame.counter.to_be_bytes(), &[u8::from(message.source.is_some())]].concat();
        require(self.numbers.insert((to, number)), "a number that was used")?;
        if !alone {
            let (channel, epoch) = (message.channel.clone(), message.epoch);
            self.inbox.push(Letter { to, channel, text, epoch, digest });
        }
        Ok(())
    }

    /// The plaintext of a message to the group, with every key of it derived.
    fn opened_message(&self, key: &Secret<32>, digest: &Digest, message: &GroupMessage) -> Verdict<Vec<u8>> {
        let frame = &message.frame;
        let (slot, start) =
            (frame.slot.to_be_bytes(), [&frame.boot_no.to_be_bytes()[..], &frame.salt].concat());
        let traffic = self.table.prf("traffic", key, &[("digest", digest)]);
        let of_start = |name: &str| self.table.prf(name, &traffic, &[("slot", &slot), ("start", &start)]);
        let mut aad = Writer::new();
        aad.fixed(digest).fixed(&slot).fixed(&start).u64(frame.counter).lp(message.channel.as_bytes());
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
        Ok(text.to_vec())
    }
}
