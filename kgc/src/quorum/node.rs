//! A KGC of a quorum as one machine: the quorum's member, and, once there is a key, the KGC that drones know.
//!
//! Messages between members have a frame of their own, and only connections with pinned members
//! ([`Route::Member`]) bring them to the member; all else goes to the KGC. The member gives the KGC shares
//! and revocation lists; the KGC gives the member proofs against leaders that equivocated.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::time::Duration;

use quiver_ainq::{Deployment, QuorumStatement, Ristretto255};
use quiver_enrolment::{KgcCommand, KgcEvent, MasterShare};
use quiver_machine::{Either, Input, Machine, Now, Output, Peer, Route, Via, earlier};
use quiver_message::quorum::QuorumMessage;
use quiver_quorum::SecretShare;
use quiver_quorum_node::{QuorumCommand, QuorumEvent, QuorumNode, QuorumRecord};
use rand_core::CryptoRngCore;

use super::release::{QuorumRelease, signed_authority};
use crate::features::Release;
use crate::kgc_machine::{CommandLineChange, KgcMachine, ServingEvent, ServingKgc, ServingRecord};

/// Member of a quorum, with its shares.
pub(crate) type QuorumMember = QuorumNode<Ristretto255>;

/// Member of the quorum and KGC for drones, as one machine.
#[derive(Debug)]
pub(crate) struct QuorumKgc {
    member: QuorumMember,
    kgc: Option<KgcMachine>,
    members: BTreeSet<Peer>,
    out: VecDeque<Output<QuorumKgcEvent, QuorumKgcRecord>>,
    deadline: Option<Duration>,
}

/// A command to either.
pub(crate) enum QuorumKgcCommand {
    /// A command for the member.
    Member(QuorumCommand),
    /// A command for the member, from a caller that waits until it was carried out.
    Asked {
        /// Comes back with [`QuorumKgcEvent::Taken`].
        number: u64,
        /// The command.
        command: QuorumCommand,
    },
    /// A change for the KGC; lost if there is none yet.
    Kgc(CommandLineChange),
    /// Drones are served from now on.
    Open {
        /// The KGC that serves them.
        kgc: Box<ServingKgc>,
        /// The newest statement about the key of encryption to conditions that the registry has, encoded.
        known: Option<Vec<u8>>,
    },
}

/// An event of either.
#[derive(Debug)]
pub(crate) enum QuorumKgcEvent {
    /// An event of the member.
    Member(QuorumEvent),
    /// An event of the KGC.
    Kgc(ServingEvent),
    /// A command was carried out; its immediate events were reported before.
    Taken {
        /// Number in [`QuorumKgcCommand::Asked`].
        number: u64,
    },
    /// The shares and the quorum's statement about them are there: drones can be served.
    Ready,
    /// The KGC signs with new shares.
    SharesReplaced {
        /// Version of the shares.
        version: u32,
    },
    /// A peer that is no member sent a message for members alone.
    Stranger(Peer),
}

/// A record of either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum QuorumKgcRecord {
    /// A record of the member.
    Member(QuorumRecord),
    /// A record of the KGC.
    Kgc(ServingRecord),
}

/// Data to open a KGC for drones with.
pub(crate) struct KgcOpening {
    /// The deployment under the quorum's key.
    pub(crate) deployment: Deployment<Ristretto255>,
    /// The share, ready to sign.
    pub(crate) share: MasterShare<Ristretto255>,
    /// The quorum's statement, encoded.
    pub(crate) statement: Vec<u8>,
}

impl QuorumKgc {
    /// A member with no KGC for drones yet.
    pub(crate) fn new(member: QuorumMember) -> Self {
        Self {
            member,
            kgc: None,
            members: BTreeSet::new(),
            out: VecDeque::new(),
            deadline: Some(Duration::ZERO),
        }
    }

    /// The member.
    pub(crate) const fn member(&self) -> &QuorumMember {
        &self.member
    }

    /// The KGC that drones know.
    pub(crate) const fn kgc(&self) -> Option<&ServingKgc> {
        match &self.kgc {
            Some(kgc) => Some(kgc.node()),
            None => None,
        }
    }

    /// The data to open a KGC for drones with; `None` before there are shares and the statement about them.
    pub(crate) fn opening(&self) -> Option<KgcOpening> {
        let (deployment, statement) = (self.member.deployment()?, self.member.quorum_statement()?);
        let share = SecretShare::decode(&self.member.keys()?.ainq().share().encode()).ok()?;
        let decoded = QuorumStatement::decode(statement).ok()?;
        Some(KgcOpening {
            deployment: deployment.clone(),
            share: MasterShare::new(deployment, share, &decoded).ok()?,
            statement: statement.to_vec(),
        })
    }

    /// The KGC, if drones are served, signs with the shares in force.
    fn renew_share(&mut self) {
        let Some(KgcOpening { share, .. }) = self.opening() else { return };
        let version = share.version();
        let event = match self.kgc.as_mut().map(|kgc| kgc.node_mut().primary_mut().replace_share(share)) {
            None => QuorumKgcEvent::Ready,
            Some(Ok(())) => QuorumKgcEvent::SharesReplaced { version },
            // Not this KGC's share: its own machine holds no such thing.
            Some(Err(_)) => return,
        };
        self.out.push_back(Output::Event(event));
    }

    fn command(&mut self, now: Now, command: QuorumKgcCommand, rng: &mut dyn CryptoRngCore) {
        match command {
            QuorumKgcCommand::Member(command) | QuorumKgcCommand::Asked { command, .. } => {
                self.member.handle_input(now, Input::Command(command), rng);
            }
            QuorumKgcCommand::Kgc(command) => self.give_kgc(now, Input::Command(command), rng),
            QuorumKgcCommand::Open { kgc, known } => {
                self.kgc = Some(KgcMachine::new(*kgc));
                self.hold(known.as_deref());
                // Whatever was signed or refreshed while it was being made.
                self.renew_share();
                self.take_revocations(now, rng);
                self.propose_release(now, rng);
            }
        }
    }

    /// Has the statement about the key of encryption to conditions signed, if it is not that about the shares
    /// in force.
    fn propose_release(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let body = self.kgc().and_then(|kgc| Release::proposal(&kgc.parts().shares, &self.member));
        if let Some(body) = body {
            self.member.handle_input(now, Input::Command(QuorumCommand::Propose(body)), rng);
        }
    }

    /// Releases with the share that the quorum has signed this statement about.
    fn hold(&mut self, statement: Option<&[u8]>) {
        if let (Some(kgc), Some(statement)) = (&mut self.kgc, statement) {
            Release::take_signed(&mut kgc.node_mut().parts_mut().shares, &self.member, statement);
        }
    }

    fn take_revocations(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        if let Some(list) = self.member.signed_revocations().map(<[u8]>::to_vec) {
            let take = Either::Left(KgcCommand::TakeRevocations(list));
            self.give_kgc(now, Input::Command(CommandLineChange::Command(take)), rng);
        }
    }

    /// The KGC had a list from a drone that the member lacks, as after a backup was put back everywhere.
    fn give_revocations(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let list = self.kgc().and_then(|kgc| kgc.signed_revocations());
        if let Some(list) = list.map(<[u8]>::to_vec) {
            self.member.handle_input(now, Input::Command(QuorumCommand::TakeRevocations(list)), rng);
            self.drain_member(now, rng);
        }
    }

    fn give_kgc(&mut self, now: Now, input: Input<'_, CommandLineChange>, rng: &mut dyn CryptoRngCore) {
        if let Some(kgc) = &mut self.kgc {
            kgc.handle_input(now, input, rng);
        }
    }

    fn received(&mut self, now: Now, from: Peer, bytes: &[u8], rng: &mut dyn CryptoRngCore) {
        match (QuorumMessage::is_framed_as(bytes), self.members.contains(&from)) {
            (true, true) => {
                self.member.handle_input(now, Input::Received { from, via: Via::Peer, bytes }, rng);
            }
            (true, false) => self.out.push_back(Output::Event(QuorumKgcEvent::Stranger(from))),
            (false, _) => self.give_kgc(now, Input::Received { from, via: Via::Peer, bytes }, rng),
        }
    }

    /// Drains both machines and carries messages from one to the other. `heard` is the message just received.
    fn settle(&mut self, now: Now, heard: &[u8], rng: &mut dyn CryptoRngCore) {
        let member = self.drain_member(now, rng);
        self.deadline = earlier(member, self.drain_kgc(now, heard, rng));
    }

    fn drain_member(&mut self, now: Now, rng: &mut dyn CryptoRngCore) -> Option<Duration> {
        loop {
            let output = self.member.poll_output();
            match &output {
                Output::Timeout(deadline) => return *deadline,
                Output::Event(event) => self.react(now, event, rng),
                _ => {}
            }
            self.out.push_back(output.map(QuorumKgcEvent::Member, QuorumKgcRecord::Member));
        }
    }

    fn react(&mut self, now: Now, event: &QuorumEvent, rng: &mut dyn CryptoRngCore) {
        match event {
            QuorumEvent::QuorumStatement { .. } => {
                self.renew_share();
                self.propose_release(now, rng);
            }
            QuorumEvent::Signed { body, signature } => {
                self.hold(signed_authority(body, signature).as_deref());
            }
            QuorumEvent::RevocationList { .. } => self.take_revocations(now, rng),
            _ => {}
        }
    }

    fn drain_kgc(&mut self, now: Now, heard: &[u8], rng: &mut dyn CryptoRngCore) -> Option<Duration> {
        loop {
            let output = self.kgc.as_mut()?.poll_output();
            match &output {
                Output::Timeout(deadline) => return *deadline,
                Output::Event(Either::Left(KgcEvent::RevocationListAdopted { .. })) => {
                    self.give_revocations(now, rng);
                }
                Output::Event(Either::Left(KgcEvent::Equivocation { .. })) => {
                    let prove = QuorumCommand::Prove(heard.to_vec());
                    self.member.handle_input(now, Input::Command(prove), rng);
                    self.drain_member(now, rng);
                }
                _ => {}
            }
            self.out.push_back(output.map(QuorumKgcEvent::Kgc, QuorumKgcRecord::Kgc));
        }
    }
}

impl Machine for QuorumKgc {
    type Command = QuorumKgcCommand;
    type Event = QuorumKgcEvent;
    type Record = QuorumKgcRecord;

    fn handle_input(&mut self, now: Now, input: Input<'_, Self::Command>, rng: &mut dyn CryptoRngCore) {
        let (mut heard, mut asked): (&[u8], _) = (&[], None);
        match input {
            Input::Timeout => {
                self.member.handle_input(now, Input::Timeout, rng);
                self.give_kgc(now, Input::Timeout, rng);
            }
            Input::Connected { peer, route: Route::Member(member) } => {
                self.members.insert(peer);
                let input = Input::Connected { peer, route: Route::Member(member) };
                self.member.handle_input(now, input, rng);
            }
            Input::Connected { peer, route } => self.give_kgc(now, Input::Connected { peer, route }, rng),
            Input::Disconnected { peer } => {
                self.members.remove(&peer);
                self.member.handle_input(now, Input::Disconnected { peer }, rng);
                self.give_kgc(now, Input::Disconnected { peer }, rng);
            }
            Input::Resumed => {
                self.member.handle_input(now, Input::Resumed, rng);
                self.give_kgc(now, Input::Resumed, rng);
            }
            Input::Received { from, bytes, .. } => {
                heard = bytes;
                self.received(now, from, bytes, rng);
            }
            Input::Command(command) => {
                if let QuorumKgcCommand::Asked { number, .. } = command {
                    asked = Some(number);
                }
                self.command(now, command, rng);
            }
        }
        self.settle(now, heard, rng);
        if let Some(number) = asked {
            self.out.push_back(Output::Event(QuorumKgcEvent::Taken { number }));
        }
    }

    fn poll_output(&mut self) -> Output<QuorumKgcEvent, QuorumKgcRecord> {
        self.out.pop_front().unwrap_or(Output::Timeout(self.deadline))
    }
}

impl fmt::Debug for QuorumKgcCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Member(_) => "Member",
            Self::Asked { .. } => "Asked",
            Self::Kgc(_) => "Kgc",
            Self::Open { .. } => "Open",
        })
    }
}
