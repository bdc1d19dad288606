//! Nodes by name: `kgc` (if there is one), `kgc-1`, `kgcs`, `leader-0`, `leaders`, `edge-7`, `edge-0..9`
//! (both ends included), `edges`, `everyone`.

use std::collections::BTreeSet;

use quiver_ainq::KgcId;
use quiver_scenario_format::Names;

use super::ScenarioError;
use super::error::SourceText;
use crate::NodeId;
use crate::node_id::NodeIndex;

/// Numbers of nodes of each kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Census {
    pub(super) kgcs: u16,
    pub(super) leaders: u16,
    pub(super) edges: u32,
}

impl Census {
    /// The nodes that are dialled.
    pub(super) fn index(self) -> NodeIndex {
        NodeIndex { kgcs: self.kgcs, leaders: self.leaders, relays: 0 }
    }

    /// The nodes, each once, in order.
    pub(super) fn nodes(
        self,
        source: &SourceText<'_>,
        names: &Names,
    ) -> Result<BTreeSet<NodeId>, ScenarioError> {
        let mut nodes = BTreeSet::new();
        for name in names.get_ref() {
            let named = self.resolve(name.get_ref()).map_err(|what| source.at(name.span(), what))?;
            nodes.extend(named);
        }
        if nodes.is_empty() {
            return Err(source.at(names.span(), "names no node"));
        }
        Ok(nodes)
    }

    /// Numbers of the named edges; any other name is an error.
    pub(super) fn edges(
        self,
        source: &SourceText<'_>,
        names: &Names,
    ) -> Result<BTreeSet<u32>, ScenarioError> {
        let number = |node| match node {
            NodeId::Edge(number) => Ok(number),
            other => Err(source.at(names.span(), format!("{other} is not an edge"))),
        };
        self.nodes(source, names)?.into_iter().map(number).collect()
    }

    /// Identifiers of the named KGCs; any other name is an error.
    pub(super) fn kgcs(
        self,
        source: &SourceText<'_>,
        names: &Names,
    ) -> Result<BTreeSet<KgcId>, ScenarioError> {
        let id = |node| match node {
            NodeId::Kgc(id) => Ok(id),
            other => Err(source.at(names.span(), format!("{other} is not a KGC"))),
        };
        self.nodes(source, names)?.into_iter().map(id).collect()
    }

    fn resolve(self, name: &str) -> Result<Vec<NodeId>, String> {
        let nodes = self.index();
        let edges = || (0..self.edges).map(NodeId::Edge);
        match name {
            "kgc" if self.kgcs == 1 => return Ok(vec![NodeId::Kgc(1)]),
            "kgc" => return Err(format!("kgc: there are {}, numbered from 1; say kgc-1 or kgcs", self.kgcs)),
            "kgcs" => return Ok(nodes.kgcs().collect()),
            "leaders" => return Ok(nodes.leaders().collect()),
            "edges" => return Ok(edges().collect()),
            "everyone" => return Ok(nodes.kgcs().chain(nodes.leaders()).chain(edges()).collect()),
            _ => {}
        }
        if let Some(id) = name.strip_prefix("kgc-") {
            return match id.parse() {
                Ok(id) if (1..=self.kgcs).contains(&id) => Ok(vec![NodeId::Kgc(id)]),
                _ => Err(format!("{name}: there are {} KGCs, numbered from 1", self.kgcs)),
            };
        }
        if let Some(ordinal) = name.strip_prefix("leader-") {
            return match ordinal.parse() {
                Ok(ordinal) if ordinal < self.leaders => Ok(vec![NodeId::Leader(ordinal)]),
                _ => Err(format!("{name}: there are {} leaders, numbered from 0", self.leaders)),
            };
        }
        let Some(numbers) = name.strip_prefix("edge-") else {
            return Err(format!(
                "unknown node {name:?}: expected kgc, kgc-1, kgcs, leader-0, leaders, edge-7, edge-0..9, edges or everyone"
            ));
        };
        let (first, last) = numbers.split_once("..").unwrap_or((numbers, numbers));
        match (first.parse::<u32>(), last.parse::<u32>()) {
            (Ok(first), Ok(last)) if first <= last && last < self.edges => {
                Ok((first..=last).map(NodeId::Edge).collect())
            }
            (Ok(first), Ok(last)) if first > last && first < self.edges => {
                Err(format!("{name}: the smaller number comes first; say edge-{last}..{first}"))
            }
            _ => Err(format!("{name}: there are {} edges, numbered from 0", self.edges)),
        }
    }
}
