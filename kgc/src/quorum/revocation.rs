//! Revocation of a drone by a quorum: requested at each KGC by its operator, signed by the quorum once enough do.

use std::time::Duration;

use quiver_ainq::UnixTime;
use quiver_service::secrets::ProtectionArgs;
use quiver_service::{clock, terminal};

use super::file::Pinned;
use crate::config::Config;
use crate::control::{KgcRequest, RevocationProgress, ask_if_running, effect};
use crate::error::Result;
use crate::registry::{self, RegistryWriter};

/// Time between two looks whether the quorum has signed a list, and their number.
const LOOK: Duration = Duration::from_millis(200);
const LOOKS: u32 = 50;

/// Has a drone revoked by the quorum, as soon as enough operators want it.
pub(super) fn request(
    config: &Config,
    protection: &ProtectionArgs,
    quorum: &Pinned,
    which: &str,
    told: Option<(UnixTime, bool)>,
) -> Result<()> {
    let entry = |writer: &mut RegistryWriter| {
        writer.change(clock::unix_now(), |change| change.revocation_requests().request(which, told))
    };
    let (serial, name) = registry::write(config, protection, entry)?;
    let (serial, threshold) = (hex::encode(serial), quorum.parameters.threshold());
    let effect = effect(config);
    let progress = progress(config, &serial, threshold.into())?;
    terminal::line(&match progress {
        Some(RevocationProgress { revoked: true, .. }) => {
            format!(
                "drone {name} (serial {serial}) is revoked: {threshold} KGCs have requested it, and the quorum signed a new revocation list"
            )
        }
        Some(RevocationProgress { wanting, .. }) if wanting >= threshold.into() => {
            format!(
                "revocation of {name} requested ({wanting} of {threshold} KGCs), and the list not signed yet; see `kgc quorum status`"
            )
        }
        Some(RevocationProgress { wanting, .. }) => {
            let missing = usize::from(threshold).saturating_sub(wanting);
            format!(
                "revocation of {name} requested ({wanting} of {threshold} KGCs). Run at {missing} more: kgc drone revoke {serial}"
            )
        }
        None => format!(
            "revocation of {name} requested here, {effect}. {threshold} KGCs must request it: kgc drone revoke {serial}"
        ),
    })?;
    Ok(())
}

/// Asks the running KGC for the progress of a revocation; once enough KGCs want it, waits until the list is
/// signed or some seconds are over.
fn progress(config: &Config, serial: &str, threshold: usize) -> Result<Option<RevocationProgress>> {
    let ask =
        || ask_if_running::<RevocationProgress>(config, &KgcRequest::Revocation { serial: serial.into() });
    for _ in 0..LOOKS {
        match ask()? {
            Some(RevocationProgress { wanting, revoked: false }) if wanting >= threshold => {
                std::thread::sleep(LOOK);
            }
            progress => return Ok(progress),
        }
    }
    ask()
}
