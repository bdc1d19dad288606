//! A leader that admits anonymous drones by a policy, and none by name: a [`Leader`] with a [`Gate`] before
//! it (§6.5).

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_abke::exchange::PolicyCircuit;
use quiver_abke::{AuthorityKey, Error as AbkeError};
use quiver_ainq::{
    Admission, AgreedSecret, Anonymous, DroneKeypair, Pseudonym, Suite, UnixTime, VerifiedAuthority,
};
use quiver_crypto::Secret;
use quiver_group::{AnonymousLeave, Leader, LeaderCommand, LeaderEvent, LeaderRecord};
use quiver_machine::{
    Destination, FinishedJob, Input, Job, Machine, Misdeed, Now, Offence, Outbox, Output, Peer, Primary,
    RelayedBroadcast, SharedRoleState, Via, earlier,
};
use quiver_message::{Message, Nonce, Refusal, RefusalReason};
use rand_core::CryptoRngCore;

use super::AdmissionError;
use super::gate::{Admitted, Gate, GateConfig, GateEvent, GateTiming};
use crate::message::{AdmissionLeave, AdmissionMessage};
use crate::policy::{AdmissionPolicyError, VerifiedPolicy};

/// Policy that a leader demands of a drone that joins.
#[derive(Clone, Debug)]
pub struct Demand<S: Suite> {
    /// The policy, for the group that is led.
    pub policy: VerifiedPolicy<S>,
    /// The authority that certifies the fields of the policy.
    pub authority: VerifiedAuthority<S>,
    /// Timers of the gate.
    pub timing: GateTiming,
}

/// Command of the operator to an admitting leader.
#[derive(Clone, Debug, PartialEq, Eq, derive_more::From)]
pub enum AdmittingLeaderCommand {
    /// A command to the leader.
    #[from]
    Leader(LeaderCommand),
    /// The slot keys of the period. Without a policy they are not used.
    SlotKeys(AuthorityKey),
}

/// Event of an admitting leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdmittingLeaderEvent {
    /// Event that every leader reports.
    Leader(LeaderEvent),
    /// A drone did not prove that it satisfies the policy. The drone does not learn the reason.
    Denied {
        /// Connection of the drone.
        peer: Peer,
        /// Reason.
        why: AdmissionError,
    },
}

/// A [`Leader`], with a gate before it: it can demand a policy. Without one it refuses anonymous joins.
#[derive(Debug, derive_more::Deref)]
pub struct AdmittingLeader<S: Suite> {
    #[deref]
    leader: Leader<S>,
    gatekeeper: Option<Box<Gatekeeper<S>>>,
    out: Outbox<AdmittingLeaderEvent, LeaderRecord>,
}

/// A demand, and the gate of the term in force.
#[derive(Debug)]
struct Gatekeeper<S: Suite> {
    demand: Demand<S>,
    /// The policy of the demand, which takes long to compile.
    compiled: Arc<PolicyCircuit>,
    slot_keys: Option<AuthorityKey>,
    /// Gate of a term, from the first admission message to the end of the term.
    gate: Option<Gate<S>>,
    /// The term that the gate is of.
    term: Option<u64>,
    /// Gates opened so far: distinguishes the jobs of one from those of another.
    gates: u64,
}

impl<S: Suite> Gatekeeper<S> {
    /// Opens the gate, unless that was done in this term.
    fn open(
        &mut self,
        leader: &Leader<S>,
        rng: &mut dyn CryptoRngCore,
    ) -> Result<&mut Gate<S>, AdmissionError> {
        let gate = match self.gate.take() {
            Some(gate) => gate,
            None => self.new_gate(leader, rng)?,
        };
        Ok(self.gate.insert(gate))
    }

    fn new_gate(
        &mut self,
        leader: &Leader<S>,
        rng: &mut dyn CryptoRngCore,
    ) -> Result<Gate<S>, AdmissionError> {
        let SharedRoleState { deployment, keypair: Some(own), group: Some(group), .. } = leader.shared()
        else {
            return Err(AdmissionError::Refused(RefusalReason::NotReady));
        };
        let (deployment, group) = (deployment.clone(), group.clone());
        let keypair = DroneKeypair::restore(&deployment, own.public().clone(), &own.to_bytes())
            .map_err(|error| AdmissionError::Policy(AdmissionPolicyError::Statement(error)))?;
        let Demand { policy, authority, timing } = self.demand.clone();
        let kem = leader.kem();
        let config = GateConfig { deployment, group, keypair, policy, authority, timing, kem };
        self.gates += 1;
        // §A4.1: a cookie key for each gate: the cookies of one term are none of the next.
        let mut gate = Gate::compiled(config, Arc::clone(&self.compiled), Secret::random(rng), self.gates)?;
        // §A5.4: no drone is admitted without the slot keys of the period, which outlive the term.
        if let Some(key) = &self.slot_keys {
            gate.take_slot_keys(key);
        }
        Ok(gate)
    }

    /// Closes the gate of a term that is over: no drone joins that term any more.
    fn follow(&mut self, term: Option<u64>) {
        // §A5.4: drones that were being admitted to a term that is over apply again.
        if self.term != term {
            self.gate = None;
            self.term = term;
        }
    }
}

impl<S: Suite> From<Leader<S>> for AdmittingLeader<S> {
    fn from(leader: Leader<S>) -> Self {
        Self { leader, gatekeeper: None, out: Outbox::new() }
    }
}

impl<S: Suite> AdmittingLeader<S> {
    /// The same leader, but that it admits anonymous drones that prove that they satisfy a policy, and none
    /// by name. It admits no drone before it has the slot keys of the period
    /// ([`AdmittingLeaderCommand::SlotKeys`]).
    ///
    /// # Errors
    /// [`AdmissionPolicyError`] if the policy is not for this group, not about these fields, over at `now`, or too
    /// large.
    pub fn demanding(mut self, demand: Demand<S>, now: UnixTime) -> Result<Self, AdmissionPolicyError> {
        let group = self.leader.status().group;
        // §A3: for this group, and about the fields of this authority; compiled once for all gates.
        let compiled = demand.policy.exchangeable(&group, &demand.authority, now)?;
        let (slot_keys, gate, term) = (None, None, None);
        self.gatekeeper = Some(Box::new(Gatekeeper { demand, compiled, slot_keys, gate, term, gates: 0 }));
        // §A5: no members by name, and no former members.
        self.leader = self.leader.with_anonymous_members_only();
        Ok(self)
    }

    /// Pieces of work that this machine did itself for drones that want to join, in this term: 0 if its
    /// driver does them.
    pub fn admission_work(&self) -> u64 {
        self.gatekeeper.as_ref().and_then(|keeper| keeper.gate.as_ref()).map_or(0, Gate::pieces)
    }

    fn gate(&mut self) -> Option<&mut Gate<S>> {
        self.gatekeeper.as_mut()?.gate.as_mut()
    }

    /// A message of a drone that wants to join anonymously. A leader in office with a demand passes it to the
    /// gate.
    fn admission(
        &mut self,
        now: Now,
        from: Peer,
        message: &AdmissionMessage<S>,
        rng: &mut dyn CryptoRngCore,
    ) {
        let nonce = match message {
            AdmissionMessage::Hello(hello) => &hello.nonce,
            AdmissionMessage::Proof(proof) => &proof.nonce,
            AdmissionMessage::Step(step) => &step.nonce,
            AdmissionMessage::Challenge(_) | AdmissionMessage::Leave(_) => {
                return self.leader.blame((from, Via::Peer), Offence::OutOfPlace("message to a leader"));
            }
        };
        // §6.5: without a demand, joins are by name.
        let Some(keeper) = &mut self.gatekeeper else {
            return self.refuse(from, RefusalReason::NotAuthorised, nonce, Duration::ZERO);
        };
        // §A4.2: refusals before a run say what is wrong.
        if let Err(wait) = self.leader.leading(now) {
            return self.refuse(from, RefusalReason::NotReady, nonce, wait);
        }
        keeper.follow(self.leader.term());
        match keeper.open(&self.leader, rng) {
            Ok(gate) => {
                gate.receive(now, from, message);
                self.drain_gate(now);
            }
            Err(why) => {
                self.out.event(AdmittingLeaderEvent::Denied { peer: from, why });
                self.refuse(from, RefusalReason::NotReady, nonce, Duration::ZERO);
            }
        }
    }

    /// A member without a name leaves.
    fn leave(&mut self, now: Now, from: Peer, leave: AdmissionLeave, rng: &mut dyn CryptoRngCore) {
        let AdmissionLeave { group, slot, held, tag } = leave;
        self.leader.anonymous_leave(now, from, &AnonymousLeave { group, slot, held, tag }, rng);
    }

    fn refuse(&mut self, peer: Peer, reason: RefusalReason, nonce: &Nonce, retry_after: Duration) {
        let refusal = Refusal { reason, reference: nonce.to_vec(), retry_after };
        self.out.send(self.leader.deployment(), peer, &Message::Refusal(refusal));
        self.out.event(AdmittingLeaderEvent::Leader(LeaderEvent::Refused { peer, reason }));
    }

    /// Ends every input of the leader. The gate is last, and works with a timeout alone: no message of a
    /// member waits for the curve arithmetic of a drone that wants to join.
    fn end_input(&mut self, now: Now, timeout: bool, rng: &mut dyn CryptoRngCore) {
        let Some(keeper) = &mut self.gatekeeper else { return };
        keeper.follow(self.leader.term());
        if let Some(gate) = &mut keeper.gate {
            // §A8: with a timeout one piece of work, unless threads do it.
            gate.tick(now, timeout, rng);
            self.drain_gate(now);
        }
    }

    /// Forwards the gate's outputs as the leader's, and admits the drones whose exchange succeeded.
    fn drain_gate(&mut self, now: Now) {
        let mut events = Vec::new();
        while let Some(gate) = self.gatekeeper.as_mut().and_then(|keeper| keeper.gate.as_mut()) {
            match gate.poll_output() {
                Output::Transmit { to: Destination::Peer(peer), payload } => {
                    self.out.send_encoded(peer, payload);
                }
                Output::Event(event) => events.push(event),
                Output::Timeout(_) => break,
                Output::Persist(never) => match never {},
                // A gate does none of these.
                Output::Transmit { to: Destination::Group, .. }
                | Output::Block(_)
                | Output::Disconnect(_)
                | Output::Relay { .. }
                | Output::Penalize { .. } => {}
            }
        }
        events.into_iter().for_each(|event| self.gate_event(now, event));
    }

    fn gate_event(&mut self, now: Now, event: GateEvent) {
        match event {
            GateEvent::Admitted { peer, pseudonym, until } => {
                let run = self.gate().and_then(|gate| gate.take_run(peer));
                let Some(Admitted { nonce, session, kem }) = run else { return };
                // §6.5: the key of the session is the pairwise secret of this membership.
                let secret = AgreedSecret::new(session.pairwise().expose());
                let member = Anonymous { pseudonym: Pseudonym(pseudonym), until };
                // §A5: welcomed with the next epoch.
                self.leader.admit(now, peer, nonce, Admission { member, secret, kem });
            }
            GateEvent::Denied { peer, why } => {
                // §A4: a key without a valid signature costs arithmetic; the next one costs its sender the
                // connection.
                let forged = matches!(
                    why,
                    AdmissionError::Exchange(
                        AbkeError::InvalidSignature
                            | AbkeError::InvalidPoint { .. }
                            | AbkeError::Malformed(_)
                    )
                );
                self.out.event(AdmittingLeaderEvent::Denied { peer, why });
                if forged {
                    self.out.penalize(peer, Misdeed::Forgery);
                }
            }
            GateEvent::KemDiffers { peer, own, other } => {
                let differs = LeaderEvent::KemDiffers { peer, own, other };
                self.out.event(AdmittingLeaderEvent::Leader(differs));
            }
            GateEvent::Blamed { peer, offence } => self.leader.blame((peer, Via::Peer), offence),
        }
    }
}

impl<S: Suite> Machine for AdmittingLeader<S> {
    type Command = AdmittingLeaderCommand;
    type Event = AdmittingLeaderEvent;
    type Record = LeaderRecord;

    fn handle_input(
        &mut self,
        now: Now,
        input: Input<'_, AdmittingLeaderCommand>,
        rng: &mut dyn CryptoRngCore,
    ) {
        let timeout = matches!(input, Input::Timeout);
        match input {
            Input::Received { from, via, bytes } => {
                return match self.decode((from, via), bytes) {
                    Some(message) => self.receive(now, (from, via), message, rng),
                    None => self.wake(now, rng),
                };
            }
            Input::Command(AdmittingLeaderCommand::SlotKeys(key)) => {
                if let Some(keeper) = &mut self.gatekeeper {
                    // §A5.2: with the slot keys of the next period drones apply again.
                    keeper.gate.iter_mut().for_each(|gate| gate.take_slot_keys(&key));
                    keeper.slot_keys = Some(key);
                }
                return self.wake(now, rng);
            }
            Input::Command(AdmittingLeaderCommand::Leader(command)) => {
                self.leader.handle_input(now, Input::Command(command), rng);
            }
            Input::Disconnected { peer } => {
                self.leader.handle_input(now, Input::Disconnected { peer }, rng);
                // §A4.2: a run ends with its connection.
                if let Some(gate) = self.gate() {
                    gate.disconnected(peer);
                }
            }
            Input::Connected { peer, route } => {
                self.leader.handle_input(now, Input::Connected { peer, route }, rng);
            }
            Input::Timeout => self.leader.handle_input(now, Input::Timeout, rng),
            Input::Resumed => self.leader.handle_input(now, Input::Resumed, rng),
        }
        self.end_input(now, timeout, rng);
    }

    /// The leader's outputs come first: its records are durable before the gate sends.
    fn poll_output(&mut self) -> Output<AdmittingLeaderEvent, LeaderRecord> {
        match self.leader.poll_output() {
            Output::Timeout(deadline) => {
                let gate = self.gate().and_then(|gate| gate.deadline());
                self.out.poll(earlier(deadline, gate))
            }
            output => output.map(AdmittingLeaderEvent::Leader, |record| record),
        }
    }

    fn take_job(&mut self) -> Option<Job> {
        self.gate()?.next_job()
    }

    fn take_broadcast(&mut self) -> Option<RelayedBroadcast> {
        self.leader.take_broadcast()
    }

    fn finish_job(&mut self, now: Now, done: FinishedJob, rng: &mut dyn CryptoRngCore) {
        if let Some(gate) = self.gate() {
            gate.finish(now, done, rng);
            self.drain_gate(now);
        }
    }
}

impl<S: Suite> Primary for AdmittingLeader<S> {
    type Suite = S;

    fn decode(&mut self, from: (Peer, Via), bytes: &[u8]) -> Option<Message<S>> {
        self.leader.decode(from, bytes)
    }

    fn receive(
        &mut self,
        now: Now,
        (from, via): (Peer, Via),
        message: Message<S>,
        rng: &mut dyn CryptoRngCore,
    ) {
        match message.extension() {
            None => {
                self.leader.receive(now, (from, via), message, rng);
                return self.end_input(now, false, rng);
            }
            // §13.6: messages received by gossip are never answered.
            Some(_) if via == Via::Group => {}
            Some(Err(error)) => self.leader.blame((from, via), error.into()),
            Some(Ok(AdmissionMessage::Leave(leave))) => {
                self.leave(now, from, leave, rng);
                return self.end_input(now, false, rng);
            }
            Some(Ok(message)) => self.admission(now, from, &message, rng),
        }
        self.wake(now, rng);
    }

    fn wake(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        self.leader.wake(now, rng);
        self.end_input(now, false, rng);
    }

    fn blame(&mut self, from: (Peer, Via), offence: Offence) {
        self.leader.blame(from, offence);
    }

    fn shared(&self) -> SharedRoleState<'_, S> {
        self.leader.shared()
    }
}
