//! An edge without a name: it shows that it satisfies what a leader demands, and is a member until its period ends.
//!
//! Such an edge has no identity to tell: neither key nor spare points are in this machine. It makes one run of the exchange over one
//! connection, follows its group within the term, and then is over: whoever drives it makes another one for the next run, over another
//! connection.
//!
//! It begins with nothing but its ledger (how often which leader was answered), which alone is stored, and the revocation list that its
//! drone fetched from the KGC under its name. An epoch that it must not fall behind, a leader that it refuses, a list that a leader gave
//! it: whatever a leader can write into a drone and read back in its next membership links the two, however little is said. For the same
//! reason it neither asks leaders for revocation lists nor tells them of its own, takes one welcome in a run, and ends with one that does not
//! hold. Nothing older can be played to it: the pairwise secret is fresh in each run.
//!
//! It may hear and speak, but it cannot sign; its boot number is 1 whenever it starts, because a number that counts starts would tell one
//! drone from another, and no two runs ever have one epoch's key under one slot.

use quiver_ainq::{Kind, Membership, Suite, VerifiedHeader};

use super::Edge;

#[cfg(not(feature = "abke"))]
mod without_abke {
    use core::time::Duration;

    use quiver_ainq::Suite;
    use quiver_message::{Refusal, Welcome};
    use rand_core::CryptoRngCore;

    use super::super::Edge;
    use quiver_machine::{Now, Peer};

    impl<S: Suite> Edge<S> {
        pub(in crate::edge) const fn is_anonymous(&self) -> bool {
            false
        }

        pub(in crate::edge) const fn anonymous_snapshot(&self) -> Option<quiver_machine::Snapshot> {
            None
        }

        pub(in crate::edge) const fn begin_run(&self, _: Now, _: &mut dyn CryptoRngCore) {}

        pub(in crate::edge) const fn welcomed_anonymous(
            &self,
            _: Now,
            _: Peer,
            _: &mut Welcome<S>,
            _: &mut dyn CryptoRngCore,
        ) {
        }

        pub(in crate::edge) const fn refused_anonymous(
            &self,
            _: Now,
            _: Peer,
            _: &Refusal,
            _: &mut dyn CryptoRngCore,
        ) -> bool {
            false
        }

        pub(in crate::edge) const fn send_leave_anonymous(&self, _: Now, _: &mut dyn CryptoRngCore) {}

        pub(in crate::edge) const fn dropped(&self) {}

        pub(in crate::edge) const fn run_is_left(&self) {}

        pub(in crate::edge) const fn run_is_evicted(&self, _: Now) {}

        pub(in crate::edge) const fn run_disconnected(&self, _: Now, _: Peer, _: &mut dyn CryptoRngCore) {}

        pub(in crate::edge) const fn tick_run(&self, _: Now, _: &mut dyn CryptoRngCore) {}

        pub(in crate::edge) const fn run_deadline(&self) -> Option<Duration> {
            None
        }
    }
}

impl<S: Suite> Edge<S> {
    /// Whether an epoch is of a term that this edge is no member of.
    pub(super) fn is_beyond_the_term(&self, membership: &Membership<S>, header: &VerifiedHeader<S>) -> bool {
        let core = header.core();
        self.is_anonymous() && (core.kind == Kind::Open || core.epoch.term != membership.epoch().term)
    }
}

#[cfg(feature = "abke")]
pub(super) use with_abke::Anonymous;
#[cfg(feature = "abke")]
pub use with_abke::{AnonymousConfig, Ending};

#[cfg(feature = "abke")]
mod with_abke {
    use alloc::boxed::Box;
    use alloc::vec::Vec;
    use core::time::Duration;

    use quiver_abke::Credential;
    use quiver_ainq::{
        AgreedSecret, Deployment, Error, GroupContext, Membership, Name, Part, Pseudonym, Suite, UnixTime,
        VerifiedAuthority, leave_tag,
    };
    use quiver_crypto::canonical::{Reader, Writer};
    use quiver_message::{AdmissionChallenge, AdmissionLeave, Message, Nonce, Refusal, Welcome};
    use rand_core::CryptoRngCore;

    use super::super::membership::member::KeptHeader;
    use super::super::{Edge, EdgeConfig, EdgeEvent, EdgeTiming, Member, RestoreError, Standing};
    use quiver_admission::applicant::{Applicant, ApplicantConfig, ApplicantEvent};
    use quiver_admission::{AdmissionError, Ledger};
    use quiver_delivery::attributes::certifying::Terms;
    use quiver_enrolment::Kgcs;
    use quiver_machine::{Backoff, due, earlier};
    use quiver_machine::{Destination, Input, Machine, Now, Offence, Output, Peer, Route, Snapshot};

    /// Of the form that such an edge's state has: version ‖ fingerprint of the deployment ‖ lp(ledger).
    const VERSION: u8 = 2;
    /// Bytes that a ledger has at most.
    const MAX_LEDGER: usize = 1 << 16;

    /// What an edge without a name is set up with.
    #[derive(Clone, Debug)]
    pub struct AnonymousConfig<S: Suite> {
        /// The deployment it belongs to.
        pub deployment: Deployment<S>,
        /// The group to join.
        pub group: Name,
        /// Who certified its fields.
        pub authority: VerifiedAuthority<S>,
        /// Its credential.
        pub credential: Credential,
        /// The period that the credential is of.
        pub period: u64,
        /// The signed revocation list that the drone fetched from the KGC, under its name. No other is ever taken.
        pub revocations: Option<Vec<u8>>,
        /// How often a leader is answered in a period.
        pub most: u32,
        /// How long a run of the exchange may take.
        pub patience: Duration,
        /// When other things happen.
        pub timing: EdgeTiming,
    }

    /// Why an edge without a name is over. Whoever drives it goes on with another one, over another connection.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Ending {
        /// It was not let in.
        Denied(AdmissionError),
        /// The period of its credential has ended, and the membership with it.
        PeriodOver,
        /// The leader knows it no more, or leads no more.
        Dropped,
        /// It was put out.
        Evicted,
        /// It left, as it was told to.
        Left,
    }

    impl Ending {
        /// Whether showing the same credential once more would end the same way.
        #[must_use]
        pub fn is_final(&self) -> bool {
            match self {
                Self::Dropped
                | Self::Denied(
                    AdmissionError::Silent
                    | AdmissionError::Refused(_)
                    | AdmissionError::OutOfTurn(_)
                    | AdmissionError::Welcome,
                ) => false,
                Self::Denied(AdmissionError::Exchange(error)) => *error == quiver_abke::Error::Unsatisfied,
                Self::Denied(_) | Self::PeriodOver | Self::Evicted | Self::Left => true,
            }
        }
    }

    /// What makes an edge one without a name.
    #[derive(Debug)]
    pub(in crate::edge) struct Anonymous<S: Suite> {
        authority: VerifiedAuthority<S>,
        credential: Credential,
        period: u64,
        most: u32,
        patience: Duration,
        ledger: Ledger,
        /// When its period ends.
        until: UnixTime,
        /// The same on the monotonic clock, as far as is known.
        ends: Option<Duration>,
        backoff: Backoff,
        run: Run<S>,
    }

    /// How far it is.
    #[derive(Debug)]
    enum Run<S: Suite> {
        /// Not begun, or to be begun again: nothing was shown.
        Idle(Option<Duration>),
        /// The exchange is under way.
        Applying(Box<Applicant<S>>),
        /// The leader knows that the policy is satisfied; the welcome is to come.
        Admitted(Admitted),
        /// In.
        Member,
        /// Nothing more is to be done.
        Over,
    }

    #[derive(Debug)]
    struct Admitted {
        peer: Peer,
        nonce: Nonce,
        pseudonym: Pseudonym,
        secret: AgreedSecret,
        deadline: Duration,
    }

    impl<S: Suite> Edge<S> {
        /// An edge without a name that starts from what one before it persisted, or from nothing.
        ///
        /// # Errors
        /// [`RestoreError`] if the stored state is damaged, of another deployment, or does not hold, or if the authority certifies nothing.
        pub fn anonymous(config: AnonymousConfig<S>, state: Option<&Snapshot>) -> Result<Self, RestoreError> {
            let AnonymousConfig { deployment, group, timing, authority, .. } = config;
            let terms = Terms::of(&authority).map_err(|_| RestoreError::Foreign)?;
            let (kgcs, backoff) = (Kgcs::single(), Backoff::new(timing.retry, timing.retry_max));
            let settings = EdgeConfig { deployment, group: Some(group), token: None, kgcs, timing };
            let ledger = match state {
                None => Ledger::default(),
                Some(state) => restored(state.as_bytes(), &settings.deployment)?,
            };
            let mut edge = Self::fresh(settings);
            if let Some(list) = &config.revocations {
                edge.revocations.offer(&edge.config.deployment, list)?;
            }
            edge.anonymous = Some(Box::new(Anonymous {
                until: terms.end_of(config.period),
                authority,
                credential: config.credential,
                period: config.period,
                most: config.most,
                patience: config.patience,
                ledger,
                ends: None,
                backoff,
                run: Run::Idle(None),
            }));
            Ok(edge)
        }

        pub(in crate::edge) const fn is_anonymous(&self) -> bool {
            self.anonymous.is_some()
        }

        /// All that an edge without a name stores: its ledger. None for others.
        pub(in crate::edge) fn anonymous_snapshot(&self) -> Option<Snapshot> {
            let ledger = self.anonymous.as_ref()?.ledger.encode();
            let fingerprint = self.config.deployment.fingerprint();
            Some(Snapshot::new(Writer::new().u8(VERSION).fixed(&fingerprint).lp(&ledger).finish()))
        }

        /// Greets the first connected leader, unless that was done already.
        pub(in crate::edge) fn begin_run(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
            let Some(peer) = self.leaders.first().copied() else { return };
            let Some(anonymous) = &mut self.anonymous else { return };
            match &anonymous.run {
                Run::Idle(retry) if retry.is_none_or(|retry| retry <= now.monotonic) => {}
                // What was a member is none any more.
                Run::Member => return self.end(Ending::Dropped),
                _ => return,
            }
            if now.unix >= anonymous.until {
                return self.end(Ending::PeriodOver);
            }
            let Some(group) = self.config.group.clone() else { return };
            anonymous.run = Run::Applying(Box::new(Applicant::new(ApplicantConfig {
                deployment: self.config.deployment.clone(),
                group,
                authority: anonymous.authority.clone(),
                credential: anonymous.credential.clone(),
                period: anonymous.period,
                revocations: self.revocations.list().clone(),
                ledger: anonymous.ledger.clone(),
                most: anonymous.most,
                patience: anonymous.patience,
            })));
            self.apply(now, Input::Connected { peer, route: Route::Leader }, rng);
        }

        /// Gives the exchange under way an input, and does what it wants done.
        fn apply(
            &mut self,
            now: Now,
            input: Input<'_, core::convert::Infallible>,
            rng: &mut dyn CryptoRngCore,
        ) {
            if let Some(applicant) = self.applicant() {
                applicant.handle_input(now, input, rng);
                self.drain_applicant(now, rng);
            }
        }

        fn applicant(&mut self) -> Option<&mut Applicant<S>> {
            match &mut self.anonymous.as_mut()?.run {
                Run::Applying(applicant) => Some(applicant),
                _ => None,
            }
        }

        /// A step of the exchange.
        pub(in crate::edge) fn hear_leader(
            &mut self,
            now: Now,
            from: Peer,
            message: &Message<S>,
            rng: &mut dyn CryptoRngCore,
        ) {
            if let Message::AdmissionChallenge(AdmissionChallenge { leader, .. }) = message
                && self.refused.names(leader)
            {
                return self.blame(from, Offence::RefusedLeader);
            }
            match self.applicant() {
                None => self.blame(from, Offence::OutOfPlace("message to an applicant")),
                Some(applicant) => {
                    applicant.hear(now, from, message, rng);
                    self.drain_applicant(now, rng);
                }
            }
        }

        fn drain_applicant(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
            let mut heard = Vec::new();
            while let Some(applicant) = self.applicant() {
                match applicant.poll_output() {
                    Output::Persist(ledger) => {
                        if let Some(anonymous) = &mut self.anonymous {
                            anonymous.ledger = ledger;
                        }
                        let snapshot = self.snapshot();
                        self.out.persist(snapshot);
                    }
                    Output::Transmit { to: Destination::Peer(peer), payload } => {
                        self.out.send_encoded(peer, payload);
                    }
                    Output::Event(event) => heard.push(event),
                    Output::Timeout(_) => break,
                    // It does neither.
                    Output::Transmit { to: Destination::Group, .. }
                    | Output::Block(_)
                    | Output::Relay { .. }
                    | Output::Penalize { .. } => {}
                }
            }
            for event in heard {
                match event {
                    ApplicantEvent::Admitted { pseudonym } => self.satisfied(now, Pseudonym(pseudonym)),
                    ApplicantEvent::Failed(error) => self.not_let_in(now, error, rng),
                    ApplicantEvent::Blamed { peer, offence } => self.blame(peer, offence),
                }
            }
        }

        fn satisfied(&mut self, now: Now, pseudonym: Pseudonym) {
            let Some((peer, nonce, session)) = self.applicant().and_then(Applicant::take_run) else { return };
            let secret = AgreedSecret::new(session.pairwise().expose());
            let deadline = now.monotonic + self.config.timing.admission;
            if let Some(anonymous) = &mut self.anonymous {
                anonymous.run = Run::Admitted(Admitted { peer, nonce, pseudonym, secret, deadline });
            }
        }

        /// As long as nothing was shown, the same may be tried again, with the next leader first.
        fn not_let_in(&mut self, now: Now, error: AdmissionError, rng: &mut dyn CryptoRngCore) {
            let shown = self.applicant().is_none_or(|applicant| applicant.has_shown());
            let again = match &error {
                AdmissionError::Silent => true,
                AdmissionError::Refused(reason) => reason.is_transient(),
                _ => false,
            };
            if shown || !again {
                return self.end(Ending::Denied(error));
            }
            if !self.leaders.is_empty() {
                self.leaders.rotate_left(1);
            }
            if let Some(anonymous) = &mut self.anonymous {
                anonymous.run = Run::Idle(Some(now.monotonic + anonymous.backoff.next(rng)));
            }
        }

        /// Whether a refusal was about the run.
        pub(in crate::edge) fn refused_anonymous(
            &mut self,
            now: Now,
            from: Peer,
            refusal: &Refusal,
            rng: &mut dyn CryptoRngCore,
        ) -> bool {
            match self.anonymous.as_ref().map(|anonymous| &anonymous.run) {
                Some(Run::Applying(_)) => {
                    self.hear_leader(now, from, &Message::Refusal(refusal.clone()), rng);
                }
                Some(Run::Admitted(admitted)) => {
                    if admitted.peer == from && refusal.reference == admitted.nonce {
                        self.end(Ending::Denied(AdmissionError::Refused(refusal.reason)));
                    }
                }
                _ => return false,
            }
            true
        }

        /// The welcome that follows the exchange.
        pub(in crate::edge) fn welcomed_anonymous(
            &mut self,
            now: Now,
            from: Peer,
            welcome: &mut Welcome<S>,
            rng: &mut dyn CryptoRngCore,
        ) {
            let Some(anonymous) = &self.anonymous else { return };
            let Run::Admitted(admitted) = &anonymous.run else { return };
            if admitted.peer != from || admitted.nonce != welcome.nonce {
                return;
            }
            let (pseudonym, until) = (admitted.pseudonym, anonymous.until);
            let entered = self.unless_refused(&welcome.header).and_then(|()| Ok(self.enter(now, welcome)?));
            let mut member = match entered {
                // Once: which of several welcomes a drone takes would say what it has seen before, or what its clock says.
                Err(offence) => {
                    self.blame(from, offence);
                    return self.end(Ending::Denied(AdmissionError::Welcome));
                }
                Ok(member) => member,
            };
            // The secret is fresh and the header adds it: nothing older could have been made for it.
            member.anchored = true;
            member.answered(now, self.config.timing.probe);
            let slot = member.membership.slot();
            self.standing = Standing::Member(member);
            if let Some(anonymous) = &mut self.anonymous {
                anonymous.run = Run::Member;
            }
            self.out.event(EdgeEvent::Admitted { pseudonym, slot, until });
            self.activated(now, from, &welcome.header, false, rng);
            self.prefer(from);
        }

        /// The membership that a welcome gives, if everything about it holds.
        fn enter(&self, now: Now, welcome: &mut Welcome<S>) -> Result<Member<S>, Error> {
            let (Some(anonymous), Some(group)) = (&self.anonymous, &self.config.group) else {
                return Err(Error::WrongGroup);
            };
            let Run::Admitted(admitted) = &anonymous.run else { return Err(Error::WrongGroup) };
            let (deployment, list) = (self.config.deployment.clone(), self.revocations.list());
            // No epoch is too old: the secret is of this run, so no other header can have been made for it.
            let header = welcome.header.clone().verify(&deployment, group, None, list, now.unix)?;
            welcome.header.core.leader.clone_from(&header.core().leader);
            if matches!(&welcome.part, Part::Path(path) if path.r != admitted.nonce) {
                return Err(Error::Replay);
            }
            let leader = header.core().leader.clone();
            let context = GroupContext { deployment, group: group.clone(), leader };
            let Admitted { pseudonym, secret, .. } = admitted;
            let membership = Membership::admitted(&context, pseudonym, secret, &header, &welcome.part)?;
            let header = KeptHeader::new(header.header(), &self.config.deployment);
            Ok(Member::new(membership, header, self.backoff()))
        }

        /// Asks to be let out: with a tag, for there is no key to sign with.
        pub(in crate::edge) fn send_leave_anonymous(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
            let Standing::Member(member) = &mut self.standing else { return };
            member.leaving = Some(now.monotonic + member.backoff.next(rng));
            let Some(leader) = self.leaders.first().copied() else { return };
            let membership = &member.membership;
            let (group, slot, held) = (membership.group().clone(), membership.slot(), *membership.digest());
            let tag = leave_tag::<S>(membership.auth_key(), &held);
            let leave = Message::<S>::AdmissionLeave(AdmissionLeave { group, slot, held, tag });
            self.out.send(&self.config.deployment, leader, &leave);
        }

        /// The leader knows this member no more.
        pub(in crate::edge) fn dropped(&mut self) {
            self.end(Ending::Dropped);
        }

        pub(in crate::edge) fn run_is_left(&mut self) {
            if self.is_anonymous() {
                self.end(Ending::Left);
            }
        }

        pub(in crate::edge) fn run_is_evicted(&mut self, now: Now) {
            if let Some(anonymous) = &self.anonymous {
                let over = now.unix >= anonymous.until;
                self.end(if over { Ending::PeriodOver } else { Ending::Evicted });
            }
        }

        /// It is over: the keys are erased, and nothing more is said.
        fn end(&mut self, why: Ending) {
            let Some(anonymous) = &mut self.anonymous else { return };
            if matches!(anonymous.run, Run::Over) {
                return;
            }
            anonymous.run = Run::Over;
            self.end_membership();
            self.out.event(EdgeEvent::Ended(why));
        }

        pub(in crate::edge) fn run_disconnected(
            &mut self,
            now: Now,
            peer: Peer,
            rng: &mut dyn CryptoRngCore,
        ) {
            self.apply(now, Input::Disconnected { peer }, rng);
            let run = self.anonymous.as_ref().map(|anonymous| &anonymous.run);
            if matches!(run, Some(Run::Admitted(admitted)) if admitted.peer == peer) {
                self.end(Ending::Dropped);
            }
        }

        pub(in crate::edge) fn tick_run(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
            let Some(anonymous) = &mut self.anonymous else { return };
            let left = Duration::from_secs(anonymous.until.saturating_sub(now.unix));
            anonymous.ends = Some(now.monotonic.saturating_add(left));
            if now.unix >= anonymous.until && !matches!(anonymous.run, Run::Over) {
                return self.end(Ending::PeriodOver);
            }
            match &anonymous.run {
                Run::Idle(retry) if due(*retry, now.monotonic) => self.begin_run(now, rng),
                Run::Admitted(admitted) if due(Some(admitted.deadline), now.monotonic) => {
                    self.end(Ending::Denied(AdmissionError::Silent));
                }
                Run::Applying(applicant) if due(applicant.deadline(), now.monotonic) => {
                    self.apply(now, Input::Timeout, rng);
                }
                _ => {}
            }
        }

        pub(in crate::edge) fn run_deadline(&self) -> Option<Duration> {
            let anonymous = self.anonymous.as_ref()?;
            let own = match &anonymous.run {
                Run::Idle(retry) => *retry,
                Run::Applying(applicant) => applicant.deadline(),
                Run::Admitted(admitted) => Some(admitted.deadline),
                Run::Member => None,
                Run::Over => return None,
            };
            earlier(own, anonymous.ends)
        }
    }

    /// The ledger in a stored state.
    fn restored<S: Suite>(bytes: &[u8], deployment: &Deployment<S>) -> Result<Ledger, RestoreError> {
        let mut reader = Reader::new(bytes);
        let mut read = || -> Result<_, quiver_crypto::canonical::Malformed> {
            let (version, fingerprint) = (reader.u8()?, reader.array::<32>()?);
            let ledger = Ledger::decode(reader.lp(MAX_LEDGER)?)?;
            reader.end()?;
            Ok((version, fingerprint, ledger))
        };
        match read() {
            Ok((VERSION, fingerprint, ledger)) if fingerprint == deployment.fingerprint() => Ok(ledger),
            Ok((VERSION, ..)) => Err(RestoreError::Foreign),
            _ => Err(RestoreError::Damaged),
        }
    }
}
