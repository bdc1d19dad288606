//! KGCs that lie, for as long as an action says.

use std::collections::BTreeSet;

use quiver_ainq::{KgcId, Suite};

use super::ByzantineKgc;
use crate::kgc_node::KgcNode;
use crate::world::{Acted, WorldFeature, WorldKernel};
use crate::{Action, NodeId, Step};

/// KGCs that lie.
#[derive(Clone, Debug, Default)]
pub(crate) struct LyingKgcs(BTreeSet<KgcId>);

impl<S: Suite> WorldFeature<S> for LyingKgcs {
    fn act(&mut self, kernel: &mut WorldKernel<S>, action: &Action, _: &mut Vec<Step>) -> Acted {
        let Action::Lie { kgc, lies } = action else { return Acted::Pass };
        if *lies {
            self.0.insert(*kgc);
        } else {
            self.0.remove(kgc);
        }
        set_lying(kernel, *kgc, *lies);
        Acted::Done
    }

    fn extend_kgc(&self, kernel: &WorldKernel<S>, id: KgcId, machine: &mut KgcNode<S>) {
        if self.0.contains(&id) {
            machine.set_byzantine(Some(ByzantineKgc::behaviour(kernel.fleet(), id)));
        }
    }

    fn calm(&mut self, kernel: &mut WorldKernel<S>) -> Vec<NodeId> {
        for id in std::mem::take(&mut self.0) {
            set_lying(kernel, id, false);
        }
        Vec::new()
    }
}

/// Makes a KGC that is switched on lie, or be honest again.
fn set_lying<S: Suite>(kernel: &mut WorldKernel<S>, id: KgcId, lies: bool) {
    let fleet = kernel.shared_fleet();
    let sim_node = kernel.nodes.kgc_node_mut(id);
    if let Some(kgc_node) = sim_node.and_then(|sim_node| sim_node.machine.as_deref_mut()) {
        kgc_node.set_byzantine(lies.then(|| ByzantineKgc::behaviour(&fleet, id)));
    }
}
