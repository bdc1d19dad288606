//! Joining without a name: what the group demands, who showed that he satisfies it, and until when he is in.
//!
//! A leader that demands a policy lets nobody in by name, and opens its terms with nobody. Those it lets in are known by a pseudonym of one
//! membership. They are members like others, but in no record: a term that ends, or a leader that restarts, forgets them, and they show
//! again that they satisfy the policy.

use alloc::vec::Vec;

use quiver_ainq::{Anonymous, Slot, Suite, UnixTime, leave_tag};
use quiver_crypto::ct_eq;
use quiver_message::{AdmissionLeave, Message, Nonce, Reason, Welcome};

use super::memory::Change;
use super::{Leader, LeaderEvent};
use quiver_machine::{Now, Offence, Peer};

/// Somebody who showed that he satisfies the policy and waits for the next epoch.
#[derive(Debug)]
#[cfg_attr(not(feature = "abke"), allow(dead_code, reason = "nobody shows anything then"))]
pub(super) struct Unnamed {
    pub(super) peer: Peer,
    pub(super) nonce: Nonce,
    pub(super) admission: quiver_ainq::Admission,
}

impl Unnamed {
    /// Where the welcome goes, and to whom.
    pub(super) fn seat(&self) -> (Peer, Nonce, Anonymous) {
        (self.peer, self.nonce, self.admission.member)
    }
}

impl<S: Suite> Leader<S> {
    /// The members without a name.
    pub fn anonymous_members(&self) -> impl Iterator<Item = (Slot, &Anonymous)> {
        self.roster().anonymous_members()
    }

    /// When the first anonymous membership ends, of those in the group and those about to be.
    pub(super) fn first_anonymous_end(&self, now: Now) -> Option<UnixTime> {
        let lead = self.lead.as_ref()?;
        let members = lead.leadership.roster().anonymous_members().map(|(_, member)| member.until);
        members.chain(self.backlog.unnamed()).filter(|until| *until > now.unix).min()
    }

    /// As many of those who showed what is demanded as there is room for beside this many joins.
    pub(super) fn unnamed_that_fit(&mut self, joins: usize) -> Vec<Unnamed> {
        let taken = self.roster().len() + self.backlog.joins() + self.backlog.unnamed().count() + joins;
        let room = (self.config.max_members as usize).saturating_sub(taken);
        let mut unnamed = self.waiting.take_unnamed();
        for one in unnamed.split_off(room.min(unnamed.len())) {
            self.refuse(one.peer, Reason::Full, &one.nonce, self.config.timing.batching_max);
        }
        unnamed
    }

    /// Much may have happened while they waited.
    pub(super) fn unnamed_still_welcome(&mut self, now: Now, unnamed: Vec<Unnamed>) -> Vec<Unnamed> {
        let (welcome, late): (Vec<_>, Vec<_>) =
            unnamed.into_iter().partition(|one| one.admission.member.until > now.unix);
        for one in late {
            self.refuse(one.peer, Reason::Expired, &one.nonce, core::time::Duration::ZERO);
        }
        welcome
    }

    /// Tells those who came in without a name.
    pub(super) fn welcome_unnamed(
        &mut self,
        header: &quiver_ainq::Header<S>,
        admitted: &[Slot],
        seats: &[(Peer, Nonce, Anonymous)],
    ) {
        for (slot, (peer, nonce, member)) in admitted.iter().zip(seats) {
            self.links.connect(*slot, *peer);
            let Some(part) = self.part_for(*slot, nonce) else { continue };
            let welcome = Welcome { nonce: *nonce, header: header.clone(), part };
            self.out.send(&self.config.deployment, *peer, &Message::Welcome(welcome));
            let Anonymous { pseudonym, until } = *member;
            self.out.event(LeaderEvent::Admitted { pseudonym, slot: *slot, until });
        }
    }

    /// A member without a name wants out: under the key that the two share, for it has none to sign with.
    pub(super) fn unnamed_leave(&mut self, now: Now, from: Peer, message: &AdmissionLeave) {
        let Some(lead) = self.lead.as_ref().filter(|_| message.group == self.config.group) else { return };
        let (leadership, core) = (&lead.leadership, &lead.now.header.core);
        let (Some(_), Some(auth)) =
            (leadership.roster().anonymous(message.slot), leadership.auth_key(message.slot))
        else {
            return;
        };
        let former = message.held == core.prev && !core.added.contains(message.slot);
        if message.held != *leadership.digest() && !former {
            // Of an older epoch, or of the membership before this one: the member catches up, then says it again.
            return;
        }
        if !ct_eq(&leave_tag::<S>(auth, &message.held), &message.tag) {
            return self.blame(from, Offence::Mac("AdmissionLeave"));
        }
        self.links.connect(message.slot, from);
        self.leaves.insert(message.slot);
        self.waiting.stir(now);
    }

    /// Nobody is in a group that demands a policy without having shown that he satisfies it.
    pub(super) fn unseat_the_named(&mut self) -> Vec<Change> {
        if !self.demands_policy() {
            return Vec::new();
        }
        let slots: Vec<Slot> = self.memory.roster.iter().map(|(slot, _)| slot).collect();
        for slot in &slots {
            self.memory.roster.remove(*slot);
            self.memory.remove_spare(*slot);
        }
        slots.into_iter().map(Change::Vacated).collect()
    }
}

#[cfg(not(feature = "abke"))]
impl<S: Suite> Leader<S> {
    pub(super) const fn demands_policy(&self) -> bool {
        false
    }

    pub(super) fn at_the_gate(
        &mut self,
        _: Now,
        from: Peer,
        _: &Message<S>,
        _: &mut dyn rand_core::CryptoRngCore,
    ) {
        self.blame(from, Offence::OutOfPlace("message to a gate"));
    }

    pub(super) const fn close_gate(&self) {}

    pub(super) const fn tick_gate(&self, _: Now, _: bool, _: &mut dyn rand_core::CryptoRngCore) {}

    pub(super) const fn gate_job(&self) -> Option<quiver_machine::Job> {
        None
    }

    #[expect(clippy::needless_pass_by_value, reason = "it takes it where there is a gate")]
    pub(super) fn gate_done(
        &self,
        _: Now,
        _: quiver_machine::Finished,
        _: &mut dyn rand_core::CryptoRngCore,
    ) {
    }

    pub(super) const fn gate_deadline(&self) -> Option<core::time::Duration> {
        None
    }

    pub(super) const fn gone_from_the_gate(&self, _: Peer) {}
}

#[cfg(feature = "abke")]
pub(super) use with_abke::Admissions;
#[cfg(feature = "abke")]
pub use with_abke::Demand;

#[cfg(feature = "abke")]
mod with_abke {
    use alloc::boxed::Box;
    use alloc::sync::Arc;
    use alloc::vec::Vec;
    use core::time::Duration;

    use quiver_abke::exchange::Policy;
    use quiver_abke::{AuthorityKey, Error as AbkeError};
    use quiver_ainq::{
        Admission, AgreedSecret, Anonymous, DroneKeypair, Pseudonym, Suite, UnixTime, VerifiedAuthority,
    };
    use quiver_crypto::Secret;
    use quiver_message::{Message, Reason};
    use rand_core::CryptoRngCore;

    use super::super::{Leader, LeaderEvent};
    use super::Unnamed;
    use quiver_admission::gate::{Gate, GateConfig, GateEvent, GateTiming};
    use quiver_admission::{AdmissionError, PolicyError, VerifiedPolicy};
    use quiver_machine::{Destination, Finished, Job, Machine, Misdeed, Now, Offence, Output, Peer};

    /// What a leader demands of whoever wants in.
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
    pub(in crate::leader) struct Admissions<S: Suite> {
        demand: Demand<S>,
        /// The policy of the demand, which takes long to compile.
        compiled: Arc<Policy>,
        /// While it leads, from the first who asks on.
        gate: Option<Gate<S>>,
        /// Gates so far.
        gates: u64,
        slot_keys: Option<AuthorityKey>,
    }

    impl<S: Suite> Leader<S> {
        /// A leader that lets in who shows that he satisfies a policy, and nobody by name. It lets nobody in before it is told the slot
        /// keys of the period ([`LeaderCommand::SlotKeys`](super::super::LeaderCommand::SlotKeys)).
        ///
        /// # Errors
        /// [`PolicyError`] if the policy is not for this group, not about these fields, over at `now`, or too large.
        pub fn demanding(mut self, demand: Demand<S>, now: UnixTime) -> Result<Self, PolicyError> {
            let compiled = demand.policy.exchangeable(&self.config.group, &demand.authority, now)?;
            let admissions = Admissions { demand, compiled, gate: None, gates: 0, slot_keys: None };
            self.admissions = Some(Box::new(admissions));
            Ok(self)
        }

        pub(in crate::leader) const fn demands_policy(&self) -> bool {
            self.admissions.is_some()
        }

        /// The slot keys of a period.
        pub(in crate::leader) fn slot_keys(&mut self, key: AuthorityKey) {
            let Some(admissions) = &mut self.admissions else { return };
            if let Some(gate) = &mut admissions.gate {
                gate.take_slot_keys(&key);
            }
            admissions.slot_keys = Some(key);
        }

        /// A message of somebody without a name.
        pub(in crate::leader) fn at_the_gate(
            &mut self,
            now: Now,
            from: Peer,
            message: &Message<S>,
            rng: &mut dyn CryptoRngCore,
        ) {
            let nonce = match message {
                Message::AdmissionHello(hello) => hello.nonce,
                Message::AdmissionProof(proof) => proof.nonce,
                Message::AdmissionStep(step) => step.nonce,
                _ => return self.blame(from, Offence::OutOfPlace("message to a gate")),
            };
            if !self.demands_policy() {
                return self.refuse(from, Reason::NotAuthorised, &nonce, Duration::ZERO);
            }
            if self.lead.is_none() {
                return self.refuse(from, Reason::NotReady, &nonce, self.ready_in(now));
            }
            if let Err(why) = self.open_gate(rng) {
                self.out.event(LeaderEvent::Denied { peer: from, why });
                return self.refuse(from, Reason::NotReady, &nonce, Duration::ZERO);
            }
            if let Some(gate) = self.gate() {
                gate.hear(now, from, message);
            }
            self.drain_gate(now);
        }

        fn gate(&mut self) -> Option<&mut Gate<S>> {
            self.admissions.as_mut()?.gate.as_mut()
        }

        /// Opens the gate, if that was not done in this term.
        fn open_gate(&mut self, rng: &mut dyn CryptoRngCore) -> Result<(), AdmissionError> {
            let Self { config, admissions, memory, .. } = self;
            let (Some(admissions), Some(own)) = (admissions, &memory.keypair) else { return Ok(()) };
            if admissions.gate.is_some() {
                return Ok(());
            }
            let deployment = config.deployment.clone();
            let keypair = DroneKeypair::restore(&deployment, own.public().clone(), &own.to_bytes())
                .map_err(|error| AdmissionError::Policy(PolicyError::Statement(error)))?;
            let Demand { policy, authority, timing } = admissions.demand.clone();
            let config =
                GateConfig { deployment, group: config.group.clone(), keypair, policy, authority, timing };
            admissions.gates += 1;
            let compiled = Arc::clone(&admissions.compiled);
            let mut gate = Gate::compiled(config, compiled, Secret::random(rng), admissions.gates)?;
            if let Some(key) = &admissions.slot_keys {
                gate.take_slot_keys(key);
            }
            admissions.gate = Some(gate);
            Ok(())
        }

        /// Who leads no more lets nobody in.
        pub(in crate::leader) fn close_gate(&mut self) {
            if let Some(admissions) = &mut self.admissions {
                admissions.gate = None;
            }
        }

        pub(in crate::leader) fn gone_from_the_gate(&mut self, peer: Peer) {
            if let Some(gate) = self.gate() {
                gate.disconnected(peer);
                self.waiting.forget_unnamed(peer);
            }
        }

        pub(in crate::leader) fn tick_gate(&mut self, now: Now, timeout: bool, rng: &mut dyn CryptoRngCore) {
            if let Some(gate) = self.gate() {
                gate.tick(now, timeout, rng);
                self.drain_gate(now);
            }
        }

        pub(in crate::leader) fn gate_job(&mut self) -> Option<Job> {
            self.gate()?.next_job()
        }

        pub(in crate::leader) fn gate_done(&mut self, now: Now, done: Finished, rng: &mut dyn CryptoRngCore) {
            if let Some(gate) = self.gate() {
                gate.finish(now, done, rng);
                self.drain_gate(now);
            }
        }

        /// Pieces of work that this machine did itself for those who show that they satisfy the policy, since it leads: 0 if its driver does them.
        pub fn admission_work(&self) -> u64 {
            let gate = self.admissions.as_ref().and_then(|admissions| admissions.gate.as_ref());
            gate.map_or(0, Gate::pieces)
        }

        pub(in crate::leader) fn gate_deadline(&self) -> Option<Duration> {
            self.admissions.as_ref()?.gate.as_ref()?.deadline()
        }

        /// What the gate wants done is done as the leader's.
        fn drain_gate(&mut self, now: Now) {
            let mut heard = Vec::new();
            while let Some(gate) = self.admissions.as_mut().and_then(|admissions| admissions.gate.as_mut()) {
                match gate.poll_output() {
                    Output::Transmit { to: Destination::Peer(peer), payload } => {
                        self.out.send_encoded(peer, payload);
                    }
                    Output::Event(event) => heard.push(event),
                    Output::Timeout(_) => break,
                    Output::Persist(never) => match never {},
                    // It does neither.
                    Output::Transmit { to: Destination::Group, .. }
                    | Output::Block(_)
                    | Output::Relay { .. }
                    | Output::Penalize { .. } => {}
                }
            }
            for event in heard {
                match event {
                    GateEvent::Admitted { peer, pseudonym, until } => {
                        self.let_in(now, peer, Anonymous { pseudonym: Pseudonym(pseudonym), until });
                    }
                    GateEvent::Denied { peer, why } => {
                        // A key that nobody signed cost arithmetic: the next one costs its sender a connection, and a while.
                        let forged = matches!(
                            why,
                            AdmissionError::Exchange(
                                AbkeError::InvalidSignature
                                    | AbkeError::InvalidPoint { .. }
                                    | AbkeError::Malformed(_)
                            )
                        );
                        self.out.event(LeaderEvent::Denied { peer, why });
                        if forged {
                            self.out.penalize(peer, Misdeed::Forgery);
                        }
                    }
                    GateEvent::Blamed { peer, offence } => self.blame(peer, offence),
                }
            }
        }

        fn let_in(&mut self, now: Now, peer: Peer, member: Anonymous) {
            if let Some((nonce, session)) = self.gate().and_then(|gate| gate.take_run(peer)) {
                let secret = AgreedSecret::new(session.pairwise().expose());
                let admission = Admission { member, secret };
                self.waiting.push_unnamed(now, Unnamed { peer, nonce, admission });
            }
        }
    }
}
