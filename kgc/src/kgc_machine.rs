//! The KGC that drones know, as a machine that takes up attribute authorities and the share of a master key
//! while it runs.

use quiver_ainq::Ristretto255;
use quiver_delivery::attributes::IssuingAuthority;
use quiver_delivery::kgc::{KgcNode, KgcNodeCommand, KgcNodeEvent, KgcNodeRecord};
use quiver_delivery::release::Holding;
use quiver_machine::{Input, Machine, Now, Output};
use rand_core::CryptoRngCore;

/// A change that the command line made beside the running KGC.
pub(crate) enum CommandLineChange {
    /// A command of the operator.
    Command(KgcNodeCommand),
    /// An attribute authority was set up.
    Authority(Box<IssuingAuthority<Ristretto255>>),
    /// A master key of encryption to conditions was set up.
    Share(Box<Holding<Ristretto255>>),
}

/// The machine.
#[derive(Debug)]
pub(crate) struct KgcMachine(KgcNode<Ristretto255>);

impl KgcMachine {
    pub(crate) const fn new(node: KgcNode<Ristretto255>) -> Self {
        Self(node)
    }

    /// The KGC and its deliveries.
    pub(crate) const fn node(&self) -> &KgcNode<Ristretto255> {
        &self.0
    }

    /// The same, to be changed.
    pub(crate) const fn node_mut(&mut self) -> &mut KgcNode<Ristretto255> {
        &mut self.0
    }
}

/// Offers an authority to drones from now on.
fn add_authority(node: &mut KgcNode<Ristretto255>, authority: IssuingAuthority<Ristretto255>) {
    let name = authority.statement.name.clone();
    if let Err(error) = node.parts_mut().keys.issuer_mut().add(authority) {
        tracing::error!(%name, %error, "attribute authority not taken up");
    }
}

impl Machine for KgcMachine {
    type Command = CommandLineChange;
    type Event = KgcNodeEvent;
    type Record = KgcNodeRecord;

    fn handle_input(&mut self, now: Now, input: Input<'_, CommandLineChange>, rng: &mut dyn CryptoRngCore) {
        let input = match input {
            Input::Timeout => Input::Timeout,
            Input::Connected { peer, route } => Input::Connected { peer, route },
            Input::Disconnected { peer } => Input::Disconnected { peer },
            Input::Received { from, via, bytes } => Input::Received { from, via, bytes },
            Input::Resumed => Input::Resumed,
            Input::Command(CommandLineChange::Command(command)) => Input::Command(command),
            Input::Command(CommandLineChange::Authority(authority)) => {
                return add_authority(&mut self.0, *authority);
            }
            Input::Command(CommandLineChange::Share(holding)) => {
                if let Some(server) = self.0.parts_mut().shares.as_mut() {
                    server.issuer_mut().hold(*holding);
                }
                return;
            }
        };
        self.0.handle_input(now, input, rng);
    }

    fn poll_output(&mut self) -> Output<KgcNodeEvent, KgcNodeRecord> {
        self.0.poll_output()
    }
}
