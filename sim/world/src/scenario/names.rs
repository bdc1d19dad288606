//! Nodes by name: `kgc`, `leader-0`, `leaders`, `edge-7`, `edge-0..9` (both ends included), `edges`, `everyone`.

use std::collections::BTreeSet;

use super::ScenarioError;
use super::error::SourceText;
use super::format::Names;
use crate::Node;

/// Who there is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Census {
    pub(super) leaders: u16,
    pub(super) edges: u32,
}

impl Census {
    /// The nodes, each once, in order.
    pub(super) fn nodes(
        self,
        source: &SourceText<'_>,
        names: &Names,
    ) -> Result<BTreeSet<Node>, ScenarioError> {
        let mut nodes = BTreeSet::new();
        for name in names.get_ref() {
            let named = self.resolve(name.get_ref()).map_err(|what| source.at(name.span(), what))?;
            nodes.extend(named);
        }
        if nodes.is_empty() {
            return Err(source.at(names.span(), "names nobody"));
        }
        Ok(nodes)
    }

    /// The numbers of the edges named; everybody else named is an error.
    pub(super) fn edges(
        self,
        source: &SourceText<'_>,
        names: &Names,
    ) -> Result<BTreeSet<u32>, ScenarioError> {
        let number = |node| match node {
            Node::Edge(number) => Ok(number),
            other => Err(source.at(names.span(), format!("{other} is no edge"))),
        };
        self.nodes(source, names)?.into_iter().map(number).collect()
    }

    fn resolve(self, name: &str) -> Result<Vec<Node>, String> {
        let leaders = || (0..self.leaders).map(Node::Leader);
        let edges = || (0..self.edges).map(Node::Edge);
        match name {
            "kgc" => return Ok(vec![Node::Kgc]),
            "leaders" => return Ok(leaders().collect()),
            "edges" => return Ok(edges().collect()),
            "everyone" => return Ok([Node::Kgc].into_iter().chain(leaders()).chain(edges()).collect()),
            _ => {}
        }
        if let Some(ordinal) = name.strip_prefix("leader-") {
            return match ordinal.parse() {
                Ok(ordinal) if ordinal < self.leaders => Ok(vec![Node::Leader(ordinal)]),
                _ => Err(format!("{name}: there are {} leaders, numbered from 0", self.leaders)),
            };
        }
        let Some(numbers) = name.strip_prefix("edge-") else {
            return Err(format!(
                "{name:?} is nobody: expected kgc, leader-0, leaders, edge-7, edge-0..9, edges or everyone"
            ));
        };
        let (first, last) = numbers.split_once("..").unwrap_or((numbers, numbers));
        match (first.parse::<u32>(), last.parse::<u32>()) {
            (Ok(first), Ok(last)) if first <= last && last < self.edges => {
                Ok((first..=last).map(Node::Edge).collect())
            }
            _ => Err(format!("{name}: there are {} edges, numbered from 0", self.edges)),
        }
    }
}
