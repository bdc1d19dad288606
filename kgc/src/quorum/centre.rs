//! A KGC of a quorum as one machine: what it is among the other KGCs, and, once there is a key, the centre that drones
//! know.
//!
//! Messages between members have a frame of their own, and only connections with pinned members ([`Route::Member`]) bring
//! them to the first; all else goes to the second. The first tells the second of shares and revocation lists; the second
//! tells the first of leaders that equivocated.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::time::Duration;

use quiver_ainq::{Deployment, QuorumStatement};
use quiver_message::quorum::QuorumMessage;
use quiver_quorum::{QuorumSuite, SecretShare};
use quiver_role::attributes::{CentreCommand, CentreEvent, CentreRecord, KeyCentre};
use quiver_role::quorum::{QuorumCommand, QuorumEvent, QuorumNode, QuorumRecord};
use quiver_role::{Input, KgcCommand, KgcEvent, Machine, MasterShare, Now, Output, Peer, Route, Via};
use rand_core::CryptoRngCore;

use super::release;

/// Both as one.
#[derive(Debug)]
pub(crate) struct QuorumCentre<S: QuorumSuite> {
    node: QuorumNode<S>,
    centre: Option<KeyCentre<S>>,
    members: BTreeSet<Peer>,
    out: VecDeque<Output<QuorumCentreEvent, QuorumCentreRecord>>,
    deadline: Option<Duration>,
}

/// A command to either.
pub(crate) enum QuorumCentreCommand<S: QuorumSuite> {
    /// To the member.
    Node(QuorumCommand),
    /// To the member, by somebody who wants to know when it was carried out.
    Asked {
        /// Comes back with [`QuorumCentreEvent::Taken`].
        number: u64,
        /// What.
        command: QuorumCommand,
    },
    /// To the centre; lost if there is none yet.
    Centre(CentreCommand),
    /// Drones are served from now on.
    Open(Box<KeyCentre<S>>),
}

/// An event of either.
#[derive(Debug)]
pub(crate) enum QuorumCentreEvent {
    /// Of the member.
    Node(QuorumEvent),
    /// Of the centre.
    Centre(CentreEvent),
    /// A command was carried out; everything that came of it at once was told before.
    Taken {
        /// Of [`QuorumCentreCommand::Asked`].
        number: u64,
    },
    /// There are shares and the quorum's statement about them: a centre can be opened.
    Ready,
    /// The centre signs with new shares.
    SharesReplaced {
        /// Which.
        version: u32,
    },
    /// Somebody who is no member sent a message that is for members alone.
    Stranger(Peer),
}

/// A record of either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum QuorumCentreRecord {
    /// Of the member.
    Node(QuorumRecord),
    /// Of the centre.
    Centre(CentreRecord),
}

/// What a centre of this KGC is opened with.
pub(crate) struct Opening<S: QuorumSuite> {
    /// The deployment under the quorum's key.
    pub(crate) deployment: Deployment<S>,
    /// The share, ready to sign.
    pub(crate) share: MasterShare<S>,
    /// The quorum's statement, encoded.
    pub(crate) statement: Vec<u8>,
}

impl<S: QuorumSuite> QuorumCentre<S> {
    /// A member with no centre yet.
    pub(crate) fn new(node: QuorumNode<S>) -> Self {
        Self {
            node,
            centre: None,
            members: BTreeSet::new(),
            out: VecDeque::new(),
            deadline: Some(Duration::ZERO),
        }
    }

    /// The member.
    pub(crate) const fn node(&self) -> &QuorumNode<S> {
        &self.node
    }

    /// The centre.
    pub(crate) const fn centre(&self) -> Option<&KeyCentre<S>> {
        self.centre.as_ref()
    }

    /// What a centre can be opened with; none before there are shares and the statement about them.
    pub(crate) fn opening(&self) -> Option<Opening<S>> {
        let (deployment, statement) = (self.node.deployment()?, self.node.quorum_statement()?);
        let share = SecretShare::decode(&self.node.keys()?.ainq().share().encode()).ok()?;
        let decoded = QuorumStatement::decode(statement).ok()?;
        Some(Opening {
            deployment: deployment.clone(),
            share: MasterShare::new(deployment, share, &decoded).ok()?,
            statement: statement.to_vec(),
        })
    }

    /// The centre, if there is one, signs with the shares in force.
    fn renew_share(&mut self) {
        let Some(Opening { share, .. }) = self.opening() else { return };
        let version = share.version();
        let event = match self.centre.as_mut().map(|centre| centre.replace_share(share)) {
            None => QuorumCentreEvent::Ready,
            Some(Ok(())) => QuorumCentreEvent::SharesReplaced { version },
            // Not this KGC's share: its own machine holds no such thing.
            Some(Err(_)) => return,
        };
        self.out.push_back(Output::Event(event));
    }

    fn command(&mut self, now: Now, command: QuorumCentreCommand<S>, rng: &mut dyn CryptoRngCore) {
        match command {
            QuorumCentreCommand::Node(command) | QuorumCentreCommand::Asked { command, .. } => {
                self.node.handle_input(now, Input::Command(command), rng);
            }
            QuorumCentreCommand::Centre(command) => self.tell_centre(now, Input::Command(command), rng),
            QuorumCentreCommand::Open(centre) => {
                self.centre = Some(*centre);
                // Whatever was signed or refreshed while it was being made.
                self.renew_share();
                self.take_revocations(now, rng);
                self.propose_release(now, rng);
            }
        }
    }

    /// Has the statement about the key of encryption to conditions signed, if it is not that about the shares in force.
    fn propose_release(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let Some(office) = self.centre.as_ref().and_then(KeyCentre::release) else { return };
        let held = office.holding().map(|holding| holding.authority().version());
        if held == release::version(&self.node) {
            return;
        }
        if let Some(body) = release::proposal(&self.node) {
            self.node.handle_input(now, Input::Command(QuorumCommand::Propose(body)), rng);
        }
    }

    /// Releases with the share that the quorum has just signed the statement about.
    fn hold(&mut self, body: &[u8], signature: &[u8]) {
        let authority = release::signed(&self.node, body, signature);
        let current = authority.filter(|signed| Some(signed.version()) == release::version(&self.node));
        let holding = current.and_then(|authority| release::holding(&self.node, authority));
        let office = self.centre.as_mut().and_then(KeyCentre::release_mut);
        if let (Some(office), Some(holding)) = (office, holding) {
            office.hold(holding);
        }
    }

    fn take_revocations(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        if let Some(list) = self.node.signed_revocations().map(<[u8]>::to_vec) {
            let take = CentreCommand::Kgc(KgcCommand::TakeRevocations(list));
            self.tell_centre(now, Input::Command(take), rng);
        }
    }

    /// The centre had a list from a drone that the member lacks, as after a backup was put back everywhere.
    fn give_revocations(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let list = self.centre.as_ref().and_then(|centre| centre.kgc().signed_revocations());
        if let Some(list) = list.map(<[u8]>::to_vec) {
            self.node.handle_input(now, Input::Command(QuorumCommand::TakeRevocations(list)), rng);
            self.drain_node(now, rng);
        }
    }

    fn tell_centre(&mut self, now: Now, input: Input<'_, CentreCommand>, rng: &mut dyn CryptoRngCore) {
        if let Some(centre) = &mut self.centre {
            centre.handle_input(now, input, rng);
        }
    }

    fn received(&mut self, now: Now, from: Peer, bytes: &[u8], rng: &mut dyn CryptoRngCore) {
        match (QuorumMessage::is_framed_as(bytes), self.members.contains(&from)) {
            (true, true) => self.node.handle_input(now, Input::Received { from, via: Via::Peer, bytes }, rng),
            (true, false) => self.out.push_back(Output::Event(QuorumCentreEvent::Stranger(from))),
            (false, _) => self.tell_centre(now, Input::Received { from, via: Via::Peer, bytes }, rng),
        }
    }

    /// Drains both machines and carries from one to the other what concerns it. `heard` came in just now.
    fn settle(&mut self, now: Now, heard: &[u8], rng: &mut dyn CryptoRngCore) {
        let nodes = self.drain_node(now, rng);
        let centres = self.drain_centre(now, heard, rng);
        self.deadline = match (nodes, centres) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }

    fn drain_node(&mut self, now: Now, rng: &mut dyn CryptoRngCore) -> Option<Duration> {
        loop {
            let output = match self.node.poll_output() {
                Output::Timeout(deadline) => return deadline,
                Output::Persist(record) => Output::Persist(QuorumCentreRecord::Node(record)),
                Output::Transmit { to, payload } => Output::Transmit { to, payload },
                Output::Block(peer) => Output::Block(peer),
                Output::Relay { peer, allowed } => Output::Relay { peer, allowed },
                Output::Penalize { peer, misdeed } => Output::Penalize { peer, misdeed },
                Output::Event(event) => {
                    self.react(now, &event, rng);
                    Output::Event(QuorumCentreEvent::Node(event))
                }
            };
            self.out.push_back(output);
        }
    }

    fn react(&mut self, now: Now, event: &QuorumEvent, rng: &mut dyn CryptoRngCore) {
        match event {
            QuorumEvent::QuorumStatement { .. } => {
                self.renew_share();
                self.propose_release(now, rng);
            }
            QuorumEvent::Signed { body, signature } => self.hold(body, signature),
            QuorumEvent::RevocationList { .. } => self.take_revocations(now, rng),
            _ => {}
        }
    }

    fn drain_centre(&mut self, now: Now, heard: &[u8], rng: &mut dyn CryptoRngCore) -> Option<Duration> {
        loop {
            let output = match self.centre.as_mut()?.poll_output() {
                Output::Timeout(deadline) => return deadline,
                Output::Persist(record) => Output::Persist(QuorumCentreRecord::Centre(record)),
                Output::Transmit { to, payload } => Output::Transmit { to, payload },
                Output::Block(peer) => Output::Block(peer),
                Output::Relay { peer, allowed } => Output::Relay { peer, allowed },
                Output::Penalize { peer, misdeed } => Output::Penalize { peer, misdeed },
                Output::Event(event) => {
                    if matches!(event, CentreEvent::Kgc(KgcEvent::RevocationListAdopted { .. })) {
                        self.give_revocations(now, rng);
                    }
                    if matches!(event, CentreEvent::Kgc(KgcEvent::Equivocation { .. })) {
                        let prove = QuorumCommand::Prove(heard.to_vec());
                        self.node.handle_input(now, Input::Command(prove), rng);
                        self.drain_node(now, rng);
                    }
                    Output::Event(QuorumCentreEvent::Centre(event))
                }
            };
            self.out.push_back(output);
        }
    }
}

impl<S: QuorumSuite> Machine for QuorumCentre<S> {
    type Command = QuorumCentreCommand<S>;
    type Event = QuorumCentreEvent;
    type Record = QuorumCentreRecord;

    fn handle_input(&mut self, now: Now, input: Input<'_, Self::Command>, rng: &mut dyn CryptoRngCore) {
        let (mut heard, mut asked): (&[u8], _) = (&[], None);
        match input {
            Input::Timeout => {
                self.node.handle_input(now, Input::Timeout, rng);
                self.tell_centre(now, Input::Timeout, rng);
            }
            Input::Connected { peer, route: Route::Member(member) } => {
                self.members.insert(peer);
                let input = Input::Connected { peer, route: Route::Member(member) };
                self.node.handle_input(now, input, rng);
            }
            Input::Connected { peer, route } => self.tell_centre(now, Input::Connected { peer, route }, rng),
            Input::Disconnected { peer } => {
                self.members.remove(&peer);
                self.node.handle_input(now, Input::Disconnected { peer }, rng);
                self.tell_centre(now, Input::Disconnected { peer }, rng);
            }
            Input::Resumed => {
                self.node.handle_input(now, Input::Resumed, rng);
                self.tell_centre(now, Input::Resumed, rng);
            }
            Input::Received { from, bytes, .. } => {
                heard = bytes;
                self.received(now, from, bytes, rng);
            }
            Input::Command(command) => {
                if let QuorumCentreCommand::Asked { number, .. } = command {
                    asked = Some(number);
                }
                self.command(now, command, rng);
            }
        }
        self.settle(now, heard, rng);
        if let Some(number) = asked {
            self.out.push_back(Output::Event(QuorumCentreEvent::Taken { number }));
        }
    }

    fn poll_output(&mut self) -> Output<QuorumCentreEvent, QuorumCentreRecord> {
        self.out.pop_front().unwrap_or(Output::Timeout(self.deadline))
    }
}

impl<S: QuorumSuite> fmt::Debug for QuorumCentreCommand<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Node(_) => "Node",
            Self::Asked { .. } => "Asked",
            Self::Centre(_) => "Centre",
            Self::Open(_) => "Open",
        })
    }
}
