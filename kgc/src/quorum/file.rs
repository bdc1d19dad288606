//! The init file of a quorum: the same, word for word, at every KGC, and written by people.
//!
//! ```toml
//! deployment = "alps"
//! threshold = 3
//!
//! [[kgc]]
//! id = 1
//! peer = "12D3Koo…"                             # from `kgc quorum key` on that machine
//! addresses = ["/dns4/kgc-1.example/tcp/7000"]  # where drones and the other KGCs reach it
//! ```
//! `kgc quorum init` pins it: the authentic copy is in the encrypted `quorum.state`; `quorum.toml` beside it
//! is for commands that need no secret.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use quiver_ainq::{KgcId, Name, Ristretto255, Suite};
use quiver_crypto::Hasher;
use quiver_net::{AddressError, PeerId, parse_dialled_address};
pub(crate) use quiver_quorum::MAX_MEMBERS;
use quiver_quorum::QuorumParameters;
use quiver_quorum_node::QuorumMembership;
use quiver_service::config::address_form;
use quiver_service::deployment_file::{DeploymentFile, KgcEntry};
use quiver_service::{private_file, suite};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::membership;

/// The longest file, in bytes.
const LIMIT: u64 = 256 * 1024;

/// The file as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QuorumFile {
    /// Name of the deployment.
    pub(crate) deployment: String,
    /// The suite's ID.
    #[serde(default = "default_suite")]
    pub(crate) suite: String,
    /// Threshold: number of KGCs needed.
    pub(crate) threshold: u16,
    /// All KGCs.
    pub(crate) kgc: Vec<ListedKgc>,
}

/// A KGC of the quorum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListedKgc {
    /// Identifier of the KGC: 1, 2, … without gaps.
    pub(crate) id: KgcId,
    /// Transport identity of the KGC.
    pub(crate) peer: String,
    /// Addresses of the KGC.
    #[serde(default)]
    pub(crate) addresses: Vec<String>,
}

fn default_suite() -> String {
    Ristretto255::ID.into()
}

/// The file, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pinned {
    pub(crate) file: QuorumFile,
    pub(crate) name: Name,
    pub(crate) parameters: QuorumParameters,
    /// Peers in the order of the identifiers.
    pub(crate) peers: Vec<PeerId>,
}

impl QuorumFile {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// [`Error::Quorum`] naming the file and what does not fit.
    pub(crate) fn read(path: &Path) -> Result<Pinned> {
        let content = private_file::read_public(path, LIMIT, "a quorum's file")?;
        let wrong = |what: String| Error::Quorum(format!("{}: {what}", path.display()));
        let text = content.text().ok_or_else(|| wrong("it is no text".into()))?;
        let file = toml::from_str::<Self>(text).map_err(|error| wrong(content.explain_toml(&error)))?;
        file.check().map_err(wrong)
    }

    /// Reads and checks a text.
    ///
    /// # Errors
    /// A description of the field that does not fit.
    pub(crate) fn parse(text: &str) -> std::result::Result<Pinned, String> {
        toml::from_str::<Self>(text).map_err(|error| error.to_string())?.check()
    }

    /// The text.
    ///
    /// # Errors
    /// None for a file that was checked.
    pub(crate) fn text(&self) -> Result<String> {
        toml::to_string(self).map_err(|error| Error::Quorum(error.to_string()))
    }

    fn check(mut self) -> std::result::Result<Pinned, String> {
        let name = Name::new(&self.deployment).map_err(|error| format!("`deployment`: {error}"))?;
        suite::check(&self.suite)?;
        self.kgc.sort_by_key(|seat| seat.id);
        let (n, t) = (self.kgc.len(), self.threshold);
        let members = u16::try_from(n).unwrap_or(u16::MAX);
        let parameters = QuorumParameters::new(members, t).map_err(|_| {
            format!(
                "`threshold` {t} of {n} KGCs: it must be at least 2, at most {n}, and more than half of all, so that no two \
                 quorums can disagree; at most {MAX_MEMBERS} KGCs (a single KGC is set up with `kgc init`)"
            )
        })?;
        let mut peers = BTreeMap::new();
        for (seat, id) in self.kgc.iter().zip(1..) {
            if seat.id != id {
                return Err(format!("the ids of the KGCs must be 1 to {n}, each once: there is no {id}"));
            }
            let peer = seat.check()?;
            if let Some(other) = peers.insert(peer, id) {
                return Err(format!("KGCs {other} and {id} have the same `peer`: each machine has its own"));
            }
        }
        let peers = self.kgc.iter().filter_map(|seat| seat.peer.parse().ok()).collect();
        Ok(Pinned { file: self, name, parameters, peers })
    }
}

impl ListedKgc {
    fn check(&self) -> std::result::Result<PeerId, String> {
        let id = self.id;
        let peer = self.peer.parse().map_err(|_| {
            format!(
                "`peer` of KGC {id} is not a transport identity: `kgc quorum key` on that machine prints it"
            )
        })?;
        if self.addresses.is_empty() {
            return Err(format!("KGC {id} has no `addresses`"));
        }
        let mut places = BTreeSet::new();
        for address in &self.addresses {
            let form = || address_form(address);
            let parsed = match parse_dialled_address(address) {
                // `quorum.addresses` may stand in for it.
                Err(AddressError::NoQuic) => continue,
                parsed => parsed
                    .map_err(|error| format!("`addresses` of KGC {id}: {address}: {error}; {}", form()))?,
            };
            if parsed.to_string().contains("/p2p/") {
                return Err(format!("`addresses` of KGC {id}: {address}: without /p2p/…, `peer` says that"));
            }
            if !places.insert(parsed) {
                return Err(format!("`addresses` of KGC {id}: {address} stands there twice"));
            }
        }
        Ok(peer)
    }

    /// Entry of the KGC in the deployment file.
    pub(crate) fn entry(&self) -> KgcEntry {
        // A transport identity can stand behind a multiaddress alone.
        let whole = |text: &String| {
            parse_dialled_address(text).map_or_else(|_| text.clone(), |address| address.to_string())
        };
        let addresses = self.addresses.iter().map(whole).collect();
        KgcEntry { id: self.id, peer: Some(self.peer.clone()), addresses }
    }
}

impl Pinned {
    /// The copy in a data directory, if there is one.
    ///
    /// # Errors
    /// As [`QuorumFile::read`], or that the directory cannot be read.
    pub(crate) fn kept(data_dir: &Path) -> Result<Option<Self>> {
        membership::file_in(data_dir)?.map(|path| QuorumFile::read(&path)).transpose()
    }

    /// Owner of the registry and the state file: H(suite, name, n, t). The key that names a deployment is
    /// made later, and a machine may one day be replaced by another with another transport identity.
    pub(crate) fn seat(&self) -> [u8; 32] {
        Hasher::new("quiver/1 quorum seat")
            .lp(Ristretto255::ID.as_bytes())
            .lp(self.name.as_bytes())
            .u16(self.parameters.members())
            .u16(self.parameters.threshold())
            .finish()
    }

    /// The membership that all members pin.
    ///
    /// # Errors
    /// [`Error::Quorum`].
    pub(crate) fn membership(&self) -> Result<QuorumMembership> {
        let identities = self.peers.iter().map(|peer| peer.to_bytes()).collect();
        let (name, threshold) = (self.name.clone(), self.parameters.threshold());
        QuorumMembership::new::<Ristretto255>(name, threshold, identities)
            .map_err(|error| Error::Quorum(error.to_string()))
    }

    /// The KGC with this transport identity.
    ///
    /// # Errors
    /// [`Error::Quorum`] if none has.
    pub(crate) fn own(&self, peer: &PeerId) -> Result<KgcId> {
        let seat = self.peers.iter().zip(1..).find(|(other, _)| *other == peer);
        seat.map(|(_, id)| id).ok_or_else(|| {
            Error::Quorum(format!(
                "none of the KGCs in the file is this one: its `peer` is {peer} (`kgc quorum key`)"
            ))
        })
    }

    /// The deployment file, once the quorum has its key.
    pub(crate) fn deployment_file(
        &self,
        deployment: &quiver_ainq::Deployment<Ristretto255>,
        statement: &[u8],
    ) -> DeploymentFile {
        let kgcs = self.file.kgc.iter().map(ListedKgc::entry).collect();
        DeploymentFile::new(deployment, kgcs).with_quorum(statement)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(n: u16, threshold: u16) -> QuorumFile {
        let seat = |id| ListedKgc {
            id,
            peer: PeerId::random().to_string(),
            addresses: vec![format!("/dns4/kgc-{id}/tcp/7000")],
        };
        let (deployment, suite) = ("alps".into(), default_suite());
        QuorumFile { deployment, suite, threshold, kgc: (1..=n).map(seat).collect() }
    }

    fn refused(change: impl FnOnce(&mut QuorumFile), part: &str) {
        let mut changed = file(5, 3);
        change(&mut changed);
        let error = changed.check().expect_err("refused");
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }

    #[test]
    fn file_comes_back_in_the_order_of_the_ids() {
        let mut shuffled = file(5, 3);
        shuffled.kgc.reverse();
        let pinned = QuorumFile::parse(&shuffled.text().expect("text")).expect("good");
        let ids: Vec<_> = pinned.file.kgc.iter().map(|seat| seat.id).collect();
        assert_eq!(ids, [1, 2, 3, 4, 5]);
        assert_eq!(pinned.own(&pinned.peers[3]).expect("there"), 4);
        assert!(pinned.own(&PeerId::random()).is_err());
        assert_eq!(QuorumFile::parse(&pinned.file.text().expect("text")).expect("good"), pinned);
    }

    #[test]
    fn quorum_that_is_none_is_refused_with_what_is_wrong() {
        refused(|file| file.threshold = 2, "more than half");
        refused(|file| file.threshold = 6, "more than half");
        refused(|file| file.kgc.truncate(1), "kgc init");
        refused(|file| file.kgc[4].id = 4, "there is no 5");
        refused(|file| file.kgc[1].peer = file.kgc[0].peer.clone(), "KGCs 1 and 2 have the same `peer`");
        refused(|file| file.kgc[2].peer = "me".into(), "`peer` of KGC 3");
        refused(|file| file.kgc[2].addresses.clear(), "KGC 3 has no `addresses`");
        refused(|file| file.kgc[2].addresses = vec!["kgc-3".into()], "write HOST:PORT");
        refused(|file| file.kgc[2].addresses = vec!["kgc-3:0".into()], "port 0");
        let forms = vec!["kgc-3:7000".into(), "/dns/kgc-3/tcp/7000".into()];
        refused(|file| file.kgc[2].addresses = forms, "KGC 3: /dns/kgc-3/tcp/7000 stands there twice");
        refused(|file| file.deployment = "the alps".into(), "`deployment`");
        refused(|file| file.suite = "ROT13".into(), "ROT13");
        assert!(
            QuorumFile::parse("deployment = 'a'\nthreshhold = 3").expect_err("typo").contains("threshhold")
        );
    }

    #[test]
    fn host_and_port_becomes_an_address_with_the_transport_identity_behind_it() {
        let mut file = file(3, 2);
        file.kgc[1].addresses = vec!["kgc-2.example:7000".into()];
        let pinned = file.check().expect("good");
        let entry = pinned.file.kgc[1].entry();
        let expected = format!("/dns/kgc-2.example/tcp/7000/p2p/{}", pinned.peers[1]);
        assert_eq!(entry.pinned_addresses().collect::<Vec<_>>(), [expected]);
    }

    #[test]
    fn machine_may_move_and_be_replaced_without_another_seat() {
        let pinned = file(5, 3).check().expect("good");
        let mut moved = pinned.file.clone();
        moved.kgc[0].addresses = vec!["/dns4/elsewhere/tcp/7000".into()];
        let moved = moved.check().expect("good");
        assert_eq!(moved.membership().expect("membership"), pinned.membership().expect("membership"));
        let mut replaced = pinned.file.clone();
        replaced.kgc[0].peer = PeerId::random().to_string();
        let replaced = replaced.check().expect("good");
        assert_eq!(replaced.seat(), pinned.seat());
        assert_ne!(replaced.membership().expect("membership"), pinned.membership().expect("membership"));
    }
}
