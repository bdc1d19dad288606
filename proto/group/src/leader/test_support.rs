//! A leader of thousands, as a fixture for tests: its members share one key under as many identities, and
//! none of them is connected.

use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{Deployment, Epoch, Identity, MasterSecret, Ristretto255, Role, Slot, StrategyKind};
pub(super) use quiver_testbed::{issue_keypair, name};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

use super::store::{Change, enrolled_change, origin};
use super::term::Term;
use super::{Leader, LeaderCommand, LeaderConfig, LeaderEvent, LeaderRecord};
use quiver_machine::{Input, Machine, Now, Output};

pub(super) type S = Ristretto255;

/// A leader, what it persisted, and what it has its numbers from.
pub(super) struct LeaderFixture {
    pub(super) master: MasterSecret<S>,
    pub(super) deployment: Deployment<S>,
    pub(super) leader: Leader<S>,
    pub(super) records: Vec<LeaderRecord>,
    pub(super) now: Now,
    pub(super) rng: ChaCha20Rng,
    strategy: StrategyKind,
}

impl LeaderFixture {
    /// A leader with members in these slots.
    pub(super) fn new(strategy: StrategyKind, slots: impl IntoIterator<Item = Slot>) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let master = MasterSecret::<S>::generate(&mut rng);
        let deployment = Deployment::new(name("test"), master.public());
        let role = Role::Leader { group: name("alpha"), ordinal: 0 };
        let keypair = issue_keypair(&master, &deployment, &identity([255; 16], "leader", role), &mut rng);
        let model = issue_keypair(&master, &deployment, &identity([0; 16], "model", Role::Edge), &mut rng);
        let member = |slot: Slot| {
            let mut public = model.public().clone();
            let mut serial = [0; 16];
            serial[..4].copy_from_slice(&slot.to_be_bytes());
            public.identity = identity(serial, &alloc::format!("drone-{slot}"), Role::Edge);
            Change::Member { slot, public: public.encode() }
        };
        let origin = origin(&deployment);
        let mut changes = alloc::vec![origin, enrolled_change(&keypair)];
        changes.extend(slots.into_iter().map(member));
        let records = alloc::vec![Change::record(&changes)];
        let now = Now { monotonic: Duration::from_secs(100), unix: 1_000_000 };
        let leader = Leader::new(config(&deployment, strategy), records.clone()).unwrap();
        let mut fixture = Self { master, deployment, leader, records, now, rng, strategy };
        fixture.input(Input::Timeout);
        fixture
    }

    /// The term in force.
    pub(super) fn term(&mut self) -> &mut Term<S> {
        self.leader.term.as_mut().expect("it leads")
    }

    /// The epoch in force.
    pub(super) fn epoch(&self) -> Epoch {
        self.leader.status().epoch.expect("it leads")
    }

    /// Requests a leave of the member in this slot, as a valid one does.
    pub(super) fn leave(&mut self, slot: Slot) {
        self.term().pending.request_leave([slot]);
        self.term().pending.take_leave_requested();
        let timing = self.leader.base.config.timing;
        self.leader.joining.queue.start_batch_timer(self.now, &timing);
    }

    /// Starts the leader again from what it persisted.
    pub(super) fn restart(&mut self) {
        self.leader = Leader::new(config(&self.deployment, self.strategy), self.records.clone()).unwrap();
        self.input(Input::Timeout);
    }

    pub(super) fn command(&mut self, command: LeaderCommand) -> Vec<Output<LeaderEvent, LeaderRecord>> {
        self.input(Input::Command(command))
    }

    /// The leader's outputs after this input. Its records are kept.
    pub(super) fn input(
        &mut self,
        input: Input<'_, LeaderCommand>,
    ) -> Vec<Output<LeaderEvent, LeaderRecord>> {
        self.leader.handle_input(self.now, input, &mut self.rng);
        self.drain()
    }

    fn drain(&mut self) -> Vec<Output<LeaderEvent, LeaderRecord>> {
        let mut outputs = Vec::new();
        loop {
            match self.leader.poll_output() {
                Output::Timeout(_) => return outputs,
                Output::Persist(record) => self.records.push(record),
                output => outputs.push(output),
            }
        }
    }
}

fn config(deployment: &Deployment<S>, strategy: StrategyKind) -> LeaderConfig<S> {
    LeaderConfig {
        max_members: 1 << 20,
        strategy,
        ..LeaderConfig::new(deployment.clone(), name("alpha"), None)
    }
}

pub(super) fn identity(serial: [u8; 16], text: &str, role: Role) -> Identity {
    Identity { serial, name: name(text), role, groups: alloc::vec![name("alpha")], not_after: 1 << 40 }
}
