//! The gate of a leader that demands a policy: runs the exchange with whoever wants to join anonymously.
//! docs/admission.md.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_abke::exchange::Policy;
use quiver_abke::{AuthorityKey, Error as AbkeError};
use quiver_admission::gate::{Gate, GateConfig, GateEvent, GateTiming};
use quiver_admission::{AdmissionError, PolicyError, VerifiedPolicy};
use quiver_ainq::{
    Admission, AgreedSecret, Anonymous, DroneKeypair, Pseudonym, Suite, UnixTime, VerifiedAuthority,
};
use quiver_crypto::Secret;
use quiver_machine::{Destination, Finished, Job, Machine, Misdeed, Offence, Output, Peer};
use quiver_message::{Message, Nonce, Reason};

use super::context::Cx;
use super::joining::anonymous_join::AnonymousJoin;
use super::{Leader, LeaderEvent};

/// What a leader demands of whoever wants to join.
#[derive(Clone, Debug)]
pub struct Demand<S: Suite> {
    /// The policy, for the group that is led.
    pub policy: VerifiedPolicy<S>,
    /// Whose fields it is about.
    pub authority: VerifiedAuthority<S>,
    /// When the gate does things.
    pub timing: GateTiming,
}

/// What a leader has for it.
#[derive(Debug)]
pub(super) struct Gatekeeper<S: Suite> {
    demand: Demand<S>,
    /// The policy of the demand, which takes long to compile.
    compiled: Arc<Policy>,
    /// While it leads, from the first who asks on.
    gate: Option<Gate<S>>,
    /// Gates so far.
    gates: u64,
    slot_keys: Option<AuthorityKey>,
}

/// Drones that showed that they satisfy the policy.
type Joins = Vec<AnonymousJoin>;

impl<S: Suite> Gatekeeper<S> {
    /// The slot keys of a period.
    pub(super) fn take_slot_keys(&mut self, key: AuthorityKey) {
        if let Some(gate) = &mut self.gate {
            gate.take_slot_keys(&key);
        }
        self.slot_keys = Some(key);
    }

    /// A message of a drone that wants to join anonymously.
    pub(super) fn receive(
        &mut self,
        cx: &mut Cx<'_, S>,
        from: Peer,
        nonce: &Nonce,
        message: &Message<S>,
    ) -> Joins {
        if let Err(why) = self.open(cx) {
            cx.event(LeaderEvent::Denied { peer: from, why });
            cx.refuse(from, Reason::NotReady, nonce, Duration::ZERO);
            return Vec::new();
        }
        if let Some(gate) = &mut self.gate {
            gate.hear(cx.now, from, message);
        }
        self.drain(cx)
    }

    /// Opens the gate, if that was not done in this term.
    fn open(&mut self, cx: &mut Cx<'_, S>) -> Result<(), AdmissionError> {
        let Some(own) = cx.store.keypair.as_ref().filter(|_| self.gate.is_none()) else { return Ok(()) };
        let deployment = cx.config.deployment.clone();
        let keypair = DroneKeypair::restore(&deployment, own.public().clone(), &own.to_bytes())
            .map_err(|error| AdmissionError::Policy(PolicyError::Statement(error)))?;
        let Demand { policy, authority, timing } = self.demand.clone();
        let config =
            GateConfig { deployment, group: cx.config.group.clone(), keypair, policy, authority, timing };
        self.gates += 1;
        let mut gate =
            Gate::compiled(config, Arc::clone(&self.compiled), Secret::random(cx.rng), self.gates)?;
        if let Some(key) = &self.slot_keys {
            gate.take_slot_keys(key);
        }
        self.gate = Some(gate);
        Ok(())
    }

    /// The term is over: nobody joins.
    pub(super) fn close(&mut self) {
        self.gate = None;
    }

    pub(super) fn disconnected(&mut self, peer: Peer) {
        if let Some(gate) = &mut self.gate {
            gate.disconnected(peer);
        }
    }

    pub(super) fn tick(&mut self, cx: &mut Cx<'_, S>, timeout: bool) -> Joins {
        let Some(gate) = &mut self.gate else { return Vec::new() };
        gate.tick(cx.now, timeout, cx.rng);
        self.drain(cx)
    }

    pub(super) fn next_job(&mut self) -> Option<Job> {
        self.gate.as_mut()?.next_job()
    }

    pub(super) fn finish(&mut self, cx: &mut Cx<'_, S>, done: Finished) -> Joins {
        let Some(gate) = &mut self.gate else { return Vec::new() };
        gate.finish(cx.now, done, cx.rng);
        self.drain(cx)
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        self.gate.as_ref()?.deadline()
    }

    /// What the gate wants done is done as the leader's.
    fn drain(&mut self, cx: &mut Cx<'_, S>) -> Joins {
        let mut events = Vec::new();
        while let Some(gate) = &mut self.gate {
            match gate.poll_output() {
                Output::Transmit { to: Destination::Peer(peer), payload } => {
                    cx.out.send_encoded(peer, payload);
                }
                Output::Event(event) => events.push(event),
                Output::Timeout(_) => break,
                Output::Persist(never) => match never {},
                // It does neither.
                Output::Transmit { to: Destination::Group, .. }
                | Output::Block(_)
                | Output::Relay { .. }
                | Output::Penalize { .. } => {}
            }
        }
        events.into_iter().filter_map(|event| self.handle_event(cx, event)).collect()
    }

    fn handle_event(&mut self, cx: &mut Cx<'_, S>, event: GateEvent) -> Option<AnonymousJoin> {
        match event {
            GateEvent::Admitted { peer, pseudonym, until } => {
                let (nonce, session) = self.gate.as_mut()?.take_run(peer)?;
                let secret = AgreedSecret::new(session.pairwise().expose());
                let member = Anonymous { pseudonym: Pseudonym(pseudonym), until };
                return Some(AnonymousJoin { peer, nonce, admission: Admission { member, secret } });
            }
            GateEvent::Denied { peer, why } => {
                // A key that nobody signed cost arithmetic: the next one costs its sender a connection, and a
                // while.
                let forged = matches!(
                    why,
                    AdmissionError::Exchange(
                        AbkeError::InvalidSignature
                            | AbkeError::InvalidPoint { .. }
                            | AbkeError::Malformed(_)
                    )
                );
                cx.event(LeaderEvent::Denied { peer, why });
                if forged {
                    cx.out.penalize(peer, Misdeed::Forgery);
                }
            }
            GateEvent::Blamed { peer, offence } => cx.blame(peer, offence),
        }
        None
    }
}

impl<S: Suite> Leader<S> {
    /// A leader that lets in who shows that he satisfies a policy, and nobody by name. It lets nobody in
    /// before it is told the slot keys of the period
    /// ([`LeaderCommand::SlotKeys`](super::LeaderCommand::SlotKeys)).
    ///
    /// # Errors
    /// [`PolicyError`] if the policy is not for this group, not about these fields, over at `now`, or too
    /// large.
    pub fn demanding(mut self, demand: Demand<S>, now: UnixTime) -> Result<Self, PolicyError> {
        let compiled = demand.policy.exchangeable(&self.base.config.group, &demand.authority, now)?;
        self.gatekeeper =
            Some(Box::new(Gatekeeper { demand, compiled, gate: None, gates: 0, slot_keys: None }));
        self.joining.anonymous_only = true;
        Ok(self)
    }

    /// Pieces of work that this machine did itself for those who show that they satisfy the policy, since it
    /// leads: 0 if its driver does them.
    pub fn admission_work(&self) -> u64 {
        self.gatekeeper.as_ref().and_then(|keeper| keeper.gate.as_ref()).map_or(0, Gate::pieces)
    }
}

/// The nonce of a message of the exchange.
pub(super) fn nonce_of<S: Suite>(message: &Message<S>) -> Result<Nonce, Offence> {
    match message {
        Message::AdmissionHello(hello) => Ok(hello.nonce),
        Message::AdmissionProof(proof) => Ok(proof.nonce),
        Message::AdmissionStep(step) => Ok(step.nonce),
        _ => Err(Offence::OutOfPlace("message to a gate")),
    }
}
