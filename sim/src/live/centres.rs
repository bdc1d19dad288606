//! The KGCs, each with its office for keys of conditions, as one machine as in the service.

use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::{AuthorityStatement, KgcId, Purpose, Suite};
use quiver_crypto::Secret;
use quiver_net::{Host, HostError, Multiaddr};
use quiver_role::attributes::{CentreEvent, CentreRecord, KeyCentre, Office, OfficeConfig};
use quiver_role::release::{Allowance, Audience, Policy, ReleaseConfig, ReleaseEvent, ReleaseOffice};
use quiver_role::{Kgc, KgcConfig, KgcEvent, KgcRecord};
use quiver_world::ibe_orders::IbeAuthority;

use super::board::Board;
use super::happening::Reports as _;
use super::node::Node;
use super::services::Founder;
use super::setting::Setting;
use crate::measure::{CpuMeter, CpuProbe};
use crate::plan::Plan;
use crate::seeds::{self, Player};
use crate::{Result, SimError};

/// For how long revocation lists count as fresh, in seconds.
pub(crate) const REVOCATION_VALIDITY: u64 = 24 * 3600;

/// Founds the master key of conditions.
pub(crate) fn archive<S: Suite>(plan: &Plan, founder: &Founder<S>) -> Result<IbeAuthority<S>> {
    let mut rng = seeds::generator(plan.seed, Player::Archivist, 0, 0);
    let mut dice = seeds::generator(plan.seed, Player::Archivist, 1, 0);
    let deployment = &founder.deployment;
    let sign = |statement: &AuthorityStatement<S>| {
        founder.treasury.sign(deployment, Purpose::Parameters, &statement.body(), &mut dice)
    };
    match &founder.release {
        Some(made) => IbeAuthority::together(deployment, made, sign),
        None => IbeAuthority::alone(deployment, &mut rng, sign),
    }
    .map_err(refused)
}

/// Starts a KGC.
pub(crate) fn start<S: Suite>(
    id: KgcId,
    founder: &Founder<S>,
    archive: Option<&IbeAuthority<S>>,
    setting: &Setting<S>,
    listen: Multiaddr,
    host: KgcHost,
) -> Result<Node<KeyCentre<S>>> {
    let mut rng = seeds::generator(setting.seed, Player::Kgc, u32::from(id) - 1, 0);
    let cookie_key = Secret::random(&mut rng);
    let broken = |source: Box<dyn std::error::Error + Send + Sync>| SimError::Restore {
        who: format!("KGC {id}"),
        source,
    };
    let config = KgcConfig {
        operators: vec![founder.operator()],
        deployment: setting.deployment.clone(),
        master: founder.treasury.master(&setting.deployment, id),
        id,
        cookie_key: cookie_key.clone(),
        revocation_validity: REVOCATION_VALIDITY,
    };
    let kgc = Kgc::new(config, []).map_err(|source| broken(Box::new(source)))?;
    // Nobody asks for attribute keys: those that the drones get, they get by hand.
    let office = OfficeConfig {
        deployment: setting.deployment.clone(),
        cookie_key: cookie_key.clone(),
        authorities: Vec::new(),
        grants: Vec::new(),
        interval: Duration::ZERO,
    };
    let office = Office::new(office).map_err(|source| broken(Box::new(source)))?;
    let mut centre = KeyCentre::new(setting.deployment.clone(), kgc, office);
    if let Some(archive) = archive {
        centre = centre.with_release(release(id, archive, setting, cookie_key)?);
    }
    Node::start(format!("KGC {id}"), &setting.registry(id, listen)?, centre, host, rng)
}

fn release<S: Suite>(
    id: KgcId,
    archive: &IbeAuthority<S>,
    setting: &Setting<S>,
    cookie_key: Secret<32>,
) -> Result<ReleaseOffice<S>> {
    let pattern = "mission".parse().map_err(refused)?;
    Ok(ReleaseOffice::new(ReleaseConfig {
        deployment: setting.deployment.clone(),
        cookie_key,
        holding: Some(archive.holding(id).map_err(refused)?),
        policies: vec![Policy { revision: 1, pattern, audience: Some(Audience::default()) }],
        approvals: Vec::new(),
        allowance: Allowance::default(),
    }))
}

/// Never for the conditions there are.
pub(crate) fn refused(error: impl std::fmt::Display) -> SimError {
    SimError::Usage(format!("orders for the second phase: {error}"))
}

/// The side of a KGC.
pub(crate) struct KgcHost {
    board: Arc<Board>,
    probe: CpuProbe,
}

impl KgcHost {
    /// One that reports to this board.
    pub(crate) fn new(board: Arc<Board>, meter: CpuMeter) -> Self {
        Self { board, probe: CpuProbe::new(meter) }
    }

    fn kgc(&self, event: KgcEvent) {
        match event {
            KgcEvent::Blamed { offence, .. } => self.board.offence("kgc", &offence),
            KgcEvent::Refused { reason, .. } => self.board.offence("kgc", &format!("refused {reason:?}")),
            KgcEvent::RevocationFailed(error) => self.board.offence("kgc", &error),
            KgcEvent::Equivocation { name, epoch, .. } => {
                self.board.offence("kgc", &format!("{name} contradicted itself at {epoch}"));
            }
            KgcEvent::Issued { .. }
            | KgcEvent::Pinned { .. }
            | KgcEvent::Contributed { .. }
            | KgcEvent::Enrolled { .. }
            | KgcEvent::Repeated { .. }
            | KgcEvent::RevocationListWanted(_)
            | KgcEvent::RevocationListSigned { .. }
            | KgcEvent::RevocationListClaimed { .. }
            | KgcEvent::RevocationListAdopted { .. }
            | KgcEvent::RevocationDeferred { .. }
            | KgcEvent::RevocationListFills { .. } => {}
        }
    }
}

impl<S: Suite> Host<KeyCentre<S>> for KgcHost {
    fn persist(&mut self, records: &[CentreRecord]) -> Result<(), HostError> {
        for record in records {
            if let CentreRecord::Kgc(
                KgcRecord::Issued { name, pin, .. } | KgcRecord::Pinned { name, pin, .. },
            ) = record
            {
                self.board.pinned(name.clone(), *pin);
            }
        }
        Ok(())
    }

    fn event(&mut self, _: &KeyCentre<S>, event: CentreEvent) {
        match event {
            CentreEvent::Kgc(event) => self.kgc(event),
            CentreEvent::Release(ReleaseEvent::Refused { reason, .. }) => {
                self.board.offence("kgc", &format!("refused a key: {reason:?}"));
            }
            CentreEvent::Release(ReleaseEvent::Blamed { offence, .. }) => self.board.offence("kgc", &offence),
            other => tracing::debug!(?other, "kgc"),
        }
    }

    fn before_inputs(&mut self) {
        self.probe.start();
    }

    fn after_inputs(&mut self) {
        self.probe.stop();
    }
}
