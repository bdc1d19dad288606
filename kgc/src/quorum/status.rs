//! Status of a KGC of a quorum, for `kgc quorum status`.

use quiver_ainq::KgcId;
use quiver_message::quorum::CeremonyKind;
use quiver_quorum_node::{CeremonyStage, QuorumView};
use quiver_service::monitoring::Readiness;
use quiver_service::{clock, terminal};
use serde::{Deserialize, Serialize};

use super::describe;
use super::file::Pinned;
use super::node::QuorumKgc;
use crate::drone::remarks;
use crate::metrics::KgcMetrics;

/// State of a KGC of a quorum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KgcStatus {
    /// The deployment's name.
    pub(crate) deployment: String,
    /// Id of this KGC.
    pub(crate) kgc: KgcId,
    /// Number of members.
    pub(crate) members: u16,
    /// Threshold: number of KGCs needed.
    pub(crate) threshold: u16,
    /// Fingerprint of the membership that all of them have pinned; hex.
    pub(crate) quorum: String,
    /// Fingerprint of the deployment, once there is a key; hex.
    pub(crate) fingerprint: Option<String>,
    /// Version of the shares in force.
    pub(crate) version: Option<u32>,
    /// True if the quorum has signed its public shares.
    pub(crate) statement: bool,
    /// True if drones are served.
    pub(crate) serving: bool,
    /// Tokens bound to a drone's key here.
    pub(crate) tokens: usize,
    /// The newest revocation list; 0 for none.
    pub(crate) revocation_list: u64,
    /// Remarks about the newest revocation list: how full it is, or that it is stale.
    #[serde(default)]
    pub(crate) revocation_remarks: Vec<String>,
    /// Drones that this operator wants revoked and not yet enough others.
    pub(crate) revocations_wanted: usize,
    /// The ceremony in progress.
    pub(crate) ceremony: Option<CeremonyStatus>,
    /// True if the shares are being asked for.
    pub(crate) repairing: bool,
    /// Version of newer shares that a threshold of the other KGCs have: those of this KGC are an older copy's.
    #[serde(default)]
    pub(crate) newer: Option<u32>,
    /// The other KGCs.
    pub(crate) others: Vec<Other>,
}

/// Ceremony under way among the KGCs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CeremonyStatus {
    /// `key generation` or `refresh`.
    pub(crate) kind: String,
    /// Stage of the ceremony.
    pub(crate) stage: String,
    /// The KGCs that it waits for.
    pub(crate) waits_for: Vec<KgcId>,
}

/// Another KGC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Other {
    /// Id of the KGC.
    pub(crate) kgc: KgcId,
    /// Transport identity of the KGC.
    pub(crate) peer: String,
    /// True if there is a connection.
    pub(crate) connected: bool,
    /// Version of its shares, as it reports.
    pub(crate) version: Option<u32>,
    /// True if the KGC's shares are of the same key and version as this one's.
    pub(crate) agrees: bool,
    /// True if the KGC has pinned another init file.
    #[serde(default)]
    pub(crate) pinned_otherwise: bool,
}

/// The state of the running machine.
pub(crate) fn of(machine: &QuorumKgc, pinned: &Pinned, id: KgcId) -> KgcStatus {
    let (node, view) = (machine.member(), machine.member().view());
    KgcStatus {
        deployment: pinned.name.to_string(),
        kgc: id,
        members: pinned.parameters.members(),
        threshold: pinned.parameters.threshold(),
        quorum: pinned
            .membership()
            .map(|membership| hex::encode(membership.fingerprint()))
            .unwrap_or_default(),
        fingerprint: node.deployment().map(|deployment| hex::encode(deployment.fingerprint())),
        version: view.version,
        statement: view.statement,
        serving: machine.kgc().is_some(),
        tokens: machine.kgc().map_or(0, |kgc| kgc.issued()),
        revocation_list: view.list,
        revocation_remarks: machine
            .kgc()
            .map(|kgc| remarks(&kgc.revocation_usage(), clock::unix_now()))
            .unwrap_or_default(),
        revocations_wanted: view.proposed,
        ceremony: ceremony(&view),
        repairing: view.recovering,
        newer: newer(&view, pinned.parameters.threshold().into()),
        others: view
            .members
            .iter()
            .map(|member| Other {
                kgc: member.id,
                peer: peer(pinned, member.id),
                connected: member.connected,
                version: member.version,
                agrees: member.agrees,
                pinned_otherwise: member.foreign,
            })
            .collect(),
    }
}

/// The newest version that so many of the connected others have or have gone beyond, if that is newer than ours.
fn newer(view: &QuorumView, threshold: usize) -> Option<u32> {
    let own = view.version?;
    let connected = view.members.iter().filter(|member| member.connected);
    let mut versions: Vec<u32> = connected.filter_map(|member| member.version).collect();
    versions.sort_unstable_by(|one, other| other.cmp(one));
    versions.get(threshold.checked_sub(1)?).copied().filter(|newest| *newest > own)
}

fn peer(pinned: &Pinned, id: KgcId) -> String {
    let seat = pinned.file.kgc.iter().find(|seat| seat.id == id);
    seat.map(|seat| seat.peer.clone()).unwrap_or_default()
}

fn ceremony(view: &QuorumView) -> Option<CeremonyStatus> {
    let ceremony = view.ceremony.as_ref()?;
    let stage = match ceremony.stage {
        CeremonyStage::Gathering => "all must take part",
        CeremonyStage::Committing => "all must commit",
        CeremonyStage::Echoing => "all must have the same commitments",
        CeremonyStage::Sharing => "all must send their shares",
        CeremonyStage::Confirming => "all must store theirs",
    };
    let kind = describe::kind(ceremony.kind).to_owned();
    Some(CeremonyStatus { kind, stage: stage.into(), waits_for: ceremony.waits_for.clone() })
}

impl KgcStatus {
    /// Describes the status for people.
    pub(crate) fn text(&self) -> String {
        let mut lines = vec![
            format!(
                "KGC {} of {} in quorum {}, of which any {} act",
                self.kgc, self.members, self.deployment, self.threshold
            ),
            format!("quorum fingerprint {}", self.quorum),
        ];
        lines.push(match (&self.fingerprint, self.version) {
            (Some(fingerprint), Some(version)) => {
                format!("deployment fingerprint {fingerprint}\nshares of version {version}")
            }
            _ => "no shares".into(),
        });
        lines.push(self.doing());
        lines.extend(self.otherwise());
        if self.version.is_some() {
            lines.push(format!("revocation list {}", self.revocation_list));
            lines.extend(self.revocation_remarks.iter().cloned());
        }
        if self.revocations_wanted > 0 {
            lines.push(format!(
                "revocations requested here and not signed yet: {}; each needs {} KGCs (`kgc drone revoke` there)",
                self.revocations_wanted, self.threshold
            ));
        }
        let rows: Vec<_> = self.others.iter().map(Other::row).collect();
        lines.push(terminal::table(["KGC", "CONNECTION", "SHARES", "PEER"], &rows));
        lines.join("\n")
    }

    /// Names the KGCs that pinned another init file, and says what to do about it, if any did.
    fn otherwise(&self) -> Option<String> {
        let otherwise: Vec<_> =
            self.others.iter().filter(|other| other.pinned_otherwise).map(|other| other.kgc).collect();
        (!otherwise.is_empty()).then(|| {
            format!(
                "{} pinned another init file than this KGC: compare the quorum fingerprints; whoever has the wrong one moves \
                 its data directory away, restores transport.state, and runs `kgc quorum init` again",
                describe::some(&otherwise)
            )
        })
    }

    /// Updates the gauges, and returns whether drones can enrol with the help of this KGC.
    pub(crate) fn refresh(&self, metrics: &KgcMetrics) -> Readiness {
        let connected = self.others.iter().filter(|other| other.connected).count();
        metrics.serving.set(self.serving.into());
        metrics.tokens.set(i64::try_from(self.tokens).unwrap_or(i64::MAX));
        metrics.revocation_list.set(i64::try_from(self.revocation_list).unwrap_or(i64::MAX));
        metrics.quorum_members.set(self.members.into());
        metrics.quorum_threshold.set(self.threshold.into());
        metrics.quorum_connected.set(i64::try_from(connected + 1).unwrap_or(i64::MAX));
        metrics.share_version.set(self.version.unwrap_or_default().into());
        metrics.revocations_wanted.set(i64::try_from(self.revocations_wanted).unwrap_or(i64::MAX));
        let mut standing = Readiness::ready();
        metrics.shares_outdated.set(self.outdated().is_some().into());
        if !self.serving {
            standing.add_reason(self.doing());
            if let Some(otherwise) = self.otherwise() {
                standing.add_reason(otherwise);
            }
        } else if let Some(outdated) = self.outdated() {
            standing.add_reason(outdated);
        }
        if connected + 1 < usize::from(self.threshold) {
            let missing: Vec<_> =
                self.others.iter().filter(|other| !other.connected).map(|other| other.kgc).collect();
            standing.add_reason(format!(
                "{} of {} KGCs are connected, this one included, and {} are needed; no connection to KGC {}",
                connected + 1,
                self.members,
                self.threshold,
                describe::list(&missing)
            ));
        }
        standing
    }

    /// The KGCs that a ceremony waits for: those that are not there, and those that are.
    pub(crate) fn waits(&self, ceremony: &CeremonyStatus) -> String {
        let connected = |kgc: &KgcId| self.others.iter().any(|other| other.kgc == *kgc && other.connected);
        let (here, away): (Vec<_>, Vec<_>) = ceremony.waits_for.iter().copied().partition(connected);
        let is_refresh = ceremony.kind == describe::kind(CeremonyKind::Refresh);
        // `quiver_quorum_node` has the minute.
        let rest = match is_refresh {
            true => " (a KGC joins no sooner than a minute after its last key generation or refresh)",
            false => "",
        };
        match (&here[..], &away[..]) {
            (here, []) => format!("waiting for {}{rest}", describe::some(here)),
            ([], away) => format!("waiting for {}: not connected", describe::some(away)),
            (here, away) => format!(
                "waiting for {}: not connected; and for {}{rest}",
                describe::some(away),
                describe::some(here)
            ),
        }
    }

    /// Describes, in words, the approvals that a statement which was proposed here waits for.
    pub(crate) fn approving(&self) -> String {
        let enough = self.threshold.saturating_sub(1);
        let (here, away): (Vec<&Other>, Vec<&Other>) = self.others.iter().partition(|other| other.connected);
        let ids = |others: &[&Other]| others.iter().map(|other| other.kgc).collect::<Vec<_>>();
        let connected = match (ids(&here).as_slice(), ids(&away).as_slice()) {
            ([], _) => "none of the other KGCs is connected".into(),
            (here, []) => format!("connected: {}, all there are", describe::some(here)),
            (here, away) => {
                format!("connected: {}; not connected: {}", describe::some(here), describe::some(away))
            }
        };
        format!("waiting until {enough} of the other KGCs approved it; {connected}")
    }

    /// Warning of shares of an older version than others have, with what to do about it.
    pub(crate) fn outdated(&self) -> Option<String> {
        let (own, newer) = (self.version?, self.newer?);
        // While new shares come into force, some have them sooner than others.
        if self.repairing || self.ceremony.is_some() {
            return None;
        }
        let others: Vec<_> =
            self.others.iter().filter(|other| other.version > Some(own)).map(|other| other.kgc).collect();
        Some(format!(
            "the shares here are of version {own}, and {} have version {newer}: this KGC was put back from an older copy, and no \
             drone enrols with its help; run `kgc quorum repair`",
            describe::some(&others)
        ))
    }

    /// Describes the KGC's present work, in words.
    pub(crate) fn doing(&self) -> String {
        if let Some(ceremony @ CeremonyStatus { kind, stage, .. }) = &self.ceremony {
            let hint = if self.version.is_none() && self.others.iter().any(|other| other.version.is_some()) {
                "; others have shares: if this KGC lost its own, run `kgc quorum repair`"
            } else {
                ""
            };
            return format!("{kind}: {} ({stage}){hint}", self.waits(ceremony));
        }
        if let Some(outdated) = self.outdated() {
            return outdated;
        }
        match (self.repairing, self.serving, self.statement) {
            (true, ..) => format!(
                "asking for its shares: run `kgc quorum approve --repair {}` at {} of the others",
                self.kgc, self.threshold
            ),
            (_, true, true) => format!("serving drones; tokens bound to a key: {}", self.tokens),
            (_, true, false) => {
                "serving drones with earlier shares until the quorum signed the new ones".into()
            }
            (_, false, _) if self.version.is_some() => {
                "not serving drones yet: the quorum has not signed its public shares".into()
            }
            _ => "idle: run `kgc quorum repair` if this KGC lost its shares; else restart it to make a key"
                .into(),
        }
    }
}

impl Other {
    fn row(&self) -> [String; 4] {
        let shares = match self.version {
            Some(version) if self.agrees => format!("version {version}"),
            Some(version) => format!("version {version}, not ours"),
            None => "none".into(),
        };
        let connection = match (self.connected, self.pinned_otherwise) {
            (true, true) => "up, other init file",
            (true, false) => "up",
            (false, _) => "none",
        };
        [self.kgc.to_string(), connection.into(), shares, self.peer.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proposal_names_those_who_can_approve_it_now() {
        let other = |kgc, connected| Other {
            kgc,
            peer: String::new(),
            connected,
            version: Some(1),
            agrees: true,
            pinned_otherwise: false,
        };
        let mut status = KgcStatus {
            deployment: "test".into(),
            kgc: 1,
            members: 4,
            threshold: 3,
            quorum: String::new(),
            fingerprint: None,
            version: Some(1),
            statement: true,
            serving: true,
            tokens: 0,
            revocation_list: 0,
            revocation_remarks: Vec::new(),
            revocations_wanted: 0,
            ceremony: None,
            repairing: false,
            newer: None,
            others: vec![other(2, true), other(3, false), other(4, true)],
        };
        let all = "waiting until 2 of the other KGCs approved it; ";
        assert_eq!(status.approving(), format!("{all}connected: KGCs 2 and 4; not connected: KGC 3"));
        status.others[1].connected = true;
        assert_eq!(status.approving(), format!("{all}connected: KGCs 2, 3 and 4, all there are"));
        status.others.iter_mut().for_each(|other| other.connected = false);
        assert_eq!(status.approving(), format!("{all}none of the other KGCs is connected"));
    }

    #[test]
    fn shares_of_an_older_copy_make_a_kgc_unready_once_a_threshold_has_newer_ones() {
        let member = |id, version| quiver_quorum_node::MemberView {
            id,
            connected: true,
            version,
            agrees: false,
            foreign: false,
        };
        let view = |versions: [Option<u32>; 3]| QuorumView {
            version: Some(1),
            list: 0,
            statement: true,
            ceremony: None,
            recovering: false,
            members: (2..).zip(versions).map(|(id, version)| member(id, version)).collect(),
            proposed: 0,
        };
        assert_eq!(newer(&view([Some(2), Some(1), None]), 2), None, "one alone may lie");
        assert_eq!(newer(&view([Some(2), Some(3), None]), 2), Some(2));
        assert_eq!(newer(&view([Some(1), Some(1), Some(1)]), 2), None);
        let mut older = view([Some(2), Some(2), None]);
        older.version = None;
        assert_eq!(newer(&older, 2), None, "it has none, which is said otherwise");
    }
}
