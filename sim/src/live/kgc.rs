//! Starts the KGCs, each with what issues attribute keys and shares of condition keys, as one machine as in the service.

use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::{AuthorityStatement, KgcId, Purpose, Suite};
use quiver_crypto::Secret;
use quiver_net::{Host, HostError, Multiaddr};
use quiver_role::attributes::{CentreEvent, CentreRecord, KeyCentre, Office, OfficeConfig};
use quiver_role::release::{Allowance, Audience, Policy, ReleaseConfig, ReleaseEvent, ReleaseOffice};
use quiver_role::{Kgc, KgcConfig, KgcEvent, KgcRecord};
use quiver_world::ibe_orders::IbeAuthority;

use super::deployment::Founder;
use super::drone_event::EventSink as _;
use super::event_log::EventLog;
use super::node::Node;
use super::node_settings::NodeSettings;
use crate::measure::{CpuMeter, CpuProbe};
use crate::plan::Plan;
use crate::rng_stream::{self, RngStream};
use crate::{Result, SimError};

/// For how long revocation lists count as fresh, in seconds.
pub(crate) const REVOCATION_VALIDITY: u64 = 24 * 3600;

/// Creates the authority of condition keys.
pub(crate) fn ibe_authority<S: Suite>(plan: &Plan, founder: &Founder<S>) -> Result<IbeAuthority<S>> {
    let mut rng = rng_stream::generator(plan.seed, RngStream::IbeAuthority, 0, 0);
    let mut dice = rng_stream::generator(plan.seed, RngStream::IbeAuthority, 1, 0);
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
    ibe_authority: Option<&IbeAuthority<S>>,
    setting: &NodeSettings<S>,
    listen: Multiaddr,
    host: KgcHost,
) -> Result<Node<KeyCentre<S>>> {
    let mut rng = rng_stream::generator(setting.seed, RngStream::Kgc, u32::from(id) - 1, 0);
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
    if let Some(ibe_authority) = ibe_authority {
        centre = centre.with_release(release(id, ibe_authority, setting, cookie_key)?);
    }
    Node::start(format!("KGC {id}"), &setting.registry(id, listen)?, centre, host, rng)
}

fn release<S: Suite>(
    id: KgcId,
    ibe_authority: &IbeAuthority<S>,
    setting: &NodeSettings<S>,
    cookie_key: Secret<32>,
) -> Result<ReleaseOffice<S>> {
    let pattern = "mission".parse().map_err(refused)?;
    Ok(ReleaseOffice::new(ReleaseConfig {
        deployment: setting.deployment.clone(),
        cookie_key,
        holding: Some(ibe_authority.holding(id).map_err(refused)?),
        policies: vec![Policy { revision: 1, pattern, audience: Some(Audience::default()) }],
        approvals: Vec::new(),
        allowance: Allowance::default(),
    }))
}

/// Never for the conditions there are.
pub(crate) fn refused(error: impl std::fmt::Display) -> SimError {
    SimError::Usage(format!("orders for the second phase: {error}"))
}

/// The callback of a KGC.
pub(crate) struct KgcHost {
    event_log: Arc<EventLog>,
    probe: CpuProbe,
}

impl KgcHost {
    /// A callback that reports to this event log.
    pub(crate) fn new(event_log: Arc<EventLog>, meter: CpuMeter) -> Self {
        Self { event_log, probe: CpuProbe::new(meter) }
    }

    fn kgc(&self, event: KgcEvent) {
        match event {
            KgcEvent::Blamed { offence, .. } => self.event_log.offence("kgc", &offence),
            KgcEvent::Refused { reason, .. } => self.event_log.offence("kgc", &format!("refused {reason:?}")),
            KgcEvent::RevocationFailed(error) => self.event_log.offence("kgc", &error),
            KgcEvent::Equivocation { name, epoch, .. } => {
                self.event_log.offence("kgc", &format!("{name} contradicted itself at {epoch}"));
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
                self.event_log.pinned(name.clone(), *pin);
            }
        }
        Ok(())
    }

    fn event(&mut self, _: &KeyCentre<S>, event: CentreEvent) {
        match event {
            CentreEvent::Kgc(event) => self.kgc(event),
            CentreEvent::Release(ReleaseEvent::Refused { reason, .. }) => {
                self.event_log.offence("kgc", &format!("refused a key: {reason:?}"));
            }
            CentreEvent::Release(ReleaseEvent::Blamed { offence, .. }) => {
                self.event_log.offence("kgc", &offence);
            }
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
