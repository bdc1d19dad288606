//! Starts the KGCs, each with the issuer of attribute keys and the release of condition keys, as one machine as
//! in the service.

use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::{KgcId, Suite};
use quiver_crypto::Secret;
use quiver_delivery::DeliveryServer;
use quiver_delivery::attributes::{AttributeIssuer, IssuerConfig};
use quiver_delivery::kgc::{Deliveries, DeliveryEvent, KgcNode};
use quiver_enrolment::{Kgc, KgcConfig, KgcEvent, KgcRecord};
use quiver_machine::{Either, Machine};
use quiver_net::{Host, HostError, Multiaddr};

use super::deployment::Founder;
use super::drone_event::EventSink as _;
use super::event_log::EventLog;
use super::features::{self, FeatureKeys, LiveKgcNode};
use super::node::LiveNode;
use super::node_settings::NodeSettings;
use crate::measure::{CpuMeter, CpuProbe};
use crate::rng_stream::{self, RngStream};
use crate::{Result, SimError};

/// Time for which revocation lists count as fresh, in seconds.
pub(crate) const REVOCATION_VALIDITY: u64 = 24 * 3600;

/// Starts a KGC.
pub(crate) fn start<S: Suite>(
    id: KgcId,
    founder: &Founder<S>,
    feature_keys: &FeatureKeys<S>,
    setting: &NodeSettings<S>,
    listen: Multiaddr,
    host: KgcHost,
) -> Result<LiveNode<LiveKgcNode<S>>> {
    let mut rng = rng_stream::generator(setting.seed, RngStream::Kgc, u32::from(id) - 1, 0);
    let cookie_key = Secret::random(&mut rng);
    let broken = |source: Box<dyn std::error::Error + Send + Sync>| SimError::Restore {
        who: format!("KGC {id}"),
        source,
    };
    let config = KgcConfig {
        operators: vec![founder.operator()],
        deployment: setting.deployment.clone(),
        master: founder.keys.master_key.master(&setting.deployment, id),
        id,
        cookie_key: cookie_key.clone(),
        revocation_validity: REVOCATION_VALIDITY,
    };
    let kgc = Kgc::new(config, []).map_err(|source| broken(Box::new(source)))?;
    // No drone asks for attribute keys: they get theirs by hand.
    let none = IssuerConfig { authorities: Vec::new(), grants: Vec::new(), interval: Duration::ZERO };
    let issuer = AttributeIssuer::new(none).map_err(|source| broken(Box::new(source)))?;
    let keys = DeliveryServer::new(cookie_key.clone(), issuer);
    let shares = feature_keys.share_server(id, cookie_key)?;
    let kgc = KgcNode::new(kgc, Deliveries { keys, shares });
    LiveNode::start(format!("KGC {id}"), &setting.registry(id, listen)?, kgc, host, rng)
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
            KgcEvent::Refused { reason, .. } => self.event_log.offence("kgc", &format!("refused: {reason}")),
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

impl<S: Suite> Host<LiveKgcNode<S>> for KgcHost {
    fn persist(&mut self, records: &[<LiveKgcNode<S> as Machine>::Record]) -> Result<(), HostError> {
        for record in records {
            if let Either::Left(KgcRecord::Issued { name, pin, .. } | KgcRecord::Pinned { name, pin, .. }) =
                record
            {
                self.event_log.pinned(name.clone(), *pin);
            }
        }
        Ok(())
    }

    fn event(&mut self, _: &LiveKgcNode<S>, event: <LiveKgcNode<S> as Machine>::Event) {
        match event {
            Either::Left(event) => self.kgc(event),
            Either::Right(DeliveryEvent::Shares(event)) => features::report_release(&*self.event_log, &event),
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
