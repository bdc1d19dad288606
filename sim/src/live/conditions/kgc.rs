//! The KGCs' side of orders: the authority of condition keys, and the release of a KGC's shares of them.

use quiver_ainq::{AuthorityStatement, KgcId, Purpose, Suite};
use quiver_crypto::Secret;
use quiver_delivery::DeliveryServer;
use quiver_key_release::{
    Audience, DEFAULT_RATE, ReleaseConfig, ReleaseEvent, ReleasePolicy, ShareReleaser, ShareServer,
};
use quiver_world::conditions::IbeAuthority;

use super::refused;
use crate::Result;
use crate::live::deployment::Founder;
use crate::live::drone_event::EventSink;
use crate::plan::Plan;
use crate::rng_stream::{self, RngStream};

/// Creates the authority of condition keys.
pub(in crate::live) fn authority<S: Suite>(plan: &Plan, founder: &Founder<S>) -> Result<IbeAuthority<S>> {
    let mut rng = rng_stream::generator(plan.seed, RngStream::IbeAuthority, 0, 0);
    let mut dice = rng_stream::generator(plan.seed, RngStream::IbeAuthority, 1, 0);
    let deployment = &founder.deployment;
    let sign = |statement: &AuthorityStatement<S>| {
        founder.keys.master_key.sign(deployment, Purpose::Parameters, &statement.body(), &mut dice)
    };
    match &founder.keys.release {
        Some(made) => IbeAuthority::together(deployment, made, sign),
        None => IbeAuthority::alone(deployment, &mut rng, sign),
    }
    .map_err(refused)
}

/// The server of a KGC's shares.
pub(in crate::live) fn share_server<S: Suite>(
    id: KgcId,
    ibe_authority: &IbeAuthority<S>,
    cookie_key: Secret<32>,
) -> Result<ShareServer<S>> {
    let pattern = "mission".parse().map_err(refused)?;
    let releaser = ShareReleaser::new(ReleaseConfig {
        holding: Some(ibe_authority.holding(id).map_err(refused)?),
        policies: vec![ReleasePolicy { revision: 1, pattern, audience: Some(Audience::default()) }],
        approvals: Vec::new(),
        rate: DEFAULT_RATE,
    });
    Ok(DeliveryServer::new(cookie_key, releaser))
}

/// Reports an event of the release.
pub(in crate::live) fn report(reports: &dyn EventSink, event: &ReleaseEvent) {
    match event {
        ReleaseEvent::Refused { reason, .. } => {
            reports.offence("kgc", &format!("refused a key: {reason}"));
        }
        ReleaseEvent::Blamed { offence, .. } => reports.offence("kgc", offence),
        other => tracing::debug!(?other, "kgc"),
    }
}
