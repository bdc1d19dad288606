//! Has a statement about an authority or a policy of admission signed: by the quorum, by the running KGC, or
//! with the master secret while none runs.

use std::time::Duration;

use quiver_ainq::{Deployment, Purpose, Ristretto255, StatementSignature};
use quiver_service::secrets::Protection;
use rand::rngs::OsRng;

use crate::config::Config;
use crate::control::{Request, ask_if_running};
use crate::error::{Error, Result};
use crate::quorum;
use crate::quorum::file::Pinned;
use crate::sealed::{self, MasterFile, Sealed};

/// A signature.
pub(crate) struct Signed {
    pub(crate) signature: StatementSignature<Ristretto255>,
    /// Keeps a KGC from starting before what was signed is stored; `None` if one runs.
    _lock: Option<MasterFile>,
}

/// Signs the body of a statement. `wait`: how long, in a quorum, until enough others approved it.
pub(crate) fn sign(
    config: &Config,
    deployment: &Deployment<Ristretto255>,
    by: &Protection,
    (purpose, body): (Purpose, &[u8]),
    wait: Duration,
) -> Result<Signed> {
    if let Some(pinned) = Pinned::kept(&config.data_dir)? {
        quorum::sealed::refuse_wrong_key(&config.data_dir, &pinned, by)?;
        let signature = quorum::commands::sign(config, body, wait)?;
        return Ok(Signed { signature: StatementSignature::decode(&signature)?, _lock: None });
    }
    match Sealed::open(&config.data_dir, deployment, by) {
        Ok((sealed, lock)) => {
            let signature = sealed.master.sign(deployment, purpose, body, &mut OsRng);
            Ok(Signed { signature, _lock: Some(lock) })
        }
        Err(Error::Service(quiver_service::Error::InUse { path })) => {
            // The secrets are stored under it, and the running KGC must be able to read them.
            sealed::refuse_wrong_key(&config.data_dir, deployment, by)?;
            let request = Request::Propose { body: hex::encode(body), wait: 0 };
            let Some(signature) = ask_if_running::<String>(config, &request)? else {
                return Err(quiver_service::Error::InUse { path }.into());
            };
            let signature = hex::decode(signature).map_err(Error::scheme)?;
            Ok(Signed { signature: StatementSignature::decode(&signature)?, _lock: None })
        }
        Err(error) => Err(error),
    }
}
