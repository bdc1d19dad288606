//! Requests for keys of conditions to a running service, and the answers. The socket is for the drone's owner
//! alone, as the state file is: a key goes over it in clear.

use std::fmt;
use std::time::Duration;

use quiver_ainq::{Deployment, DroneKeypair, Ristretto255};
use quiver_ibe::{Condition, IdentityKey, UnverifiedIdentityKey};
use quiver_key_release::ReleaseAuthority;
use quiver_service::control::USUAL_TIME;
use quiver_service::drone::Error as DroneError;
use quiver_service::drone::feature::FeatureRequest;
use quiver_service::drone::fetch::FetchPlan;
use quiver_service::drone::request::ANSWER_OF_KGC;
use serde::{Deserialize, Serialize};
use zeroize::Zeroize;

use super::identity_keys::IdentityKeys;
use super::{NAME, collection};
use crate::{Error, Result};

/// A request about keys of conditions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyCall {
    /// The key of a condition.
    Key {
        /// The condition.
        condition: String,
        /// Seconds to wait for it to be met.
        wait: u64,
    },
    /// The statement about the master key.
    Authority,
    /// The conditions whose keys are kept.
    List,
}

impl KeyCall {
    /// Maximum time for the answer.
    pub fn time_limit(&self) -> Duration {
        match self {
            Self::Key { wait, .. } => USUAL_TIME.saturating_add(Duration::from_secs(*wait)),
            _ => USUAL_TIME,
        }
    }

    /// The request to the running service.
    ///
    /// # Errors
    /// [`DroneError::Io`], never for a call.
    pub fn request(&self) -> Result<FeatureRequest> {
        let awaited = match self {
            Self::Key { condition, .. } => Some(format!("the key of {condition} from the KGC")),
            Self::Authority => Some(ANSWER_OF_KGC.into()),
            Self::List => None,
        };
        let call = serde_json::to_value(self).map_err(std::io::Error::from)?;
        Ok(FeatureRequest { feature: NAME.into(), call, time_limit: self.time_limit(), awaited })
    }
}

/// A key, or that one is kept.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyLine {
    /// The condition.
    pub condition: String,
    /// The key, hex; `None` if only the conditions were asked for. Secret.
    pub key: Option<String>,
}

impl fmt::Debug for KeyLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyLine").field("condition", &self.condition).finish_non_exhaustive()
    }
}

impl Drop for KeyLine {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}

/// The answer to any of the calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyReport {
    /// The signed statement about the master key, hex; `None` if it is not known.
    pub statement: Option<String>,
    /// Keys.
    pub keys: Vec<KeyLine>,
    /// Reason why there is no key, if a key was asked for: the words, and whether somebody refused it.
    pub failed: Option<(String, bool)>,
}

impl KeyReport {
    /// The verified statement about the master key.
    ///
    /// # Errors
    /// [`DroneError::Keyring`] if it does not hold, [`Error::NotReleased`] or [`Error::TooFewShares`] if there is
    /// none.
    pub fn authority(&self, deployment: &Deployment<Ristretto255>) -> Result<ReleaseAuthority<Ristretto255>> {
        self.check()?;
        let statement = self.statement.as_deref().unwrap_or_default();
        let bytes = hex::decode(statement).unwrap_or_default();
        ReleaseAuthority::decode(deployment, &bytes).map_err(Error::keyring)
    }

    /// The first key.
    ///
    /// # Errors
    /// [`Error::NotReleased`] or [`Error::TooFewShares`] if there is none, [`DroneError::Keyring`] if it is none.
    pub fn key(&self) -> Result<UnverifiedIdentityKey> {
        self.check()?;
        let mut bytes = zeroize::Zeroizing::new([0; IdentityKey::LEN]);
        let digits = self.keys.first().and_then(|line| line.key.as_deref()).unwrap_or_default();
        let read = hex::decode_to_slice(digits, bytes.as_mut_slice());
        let malformed = || Error::keyring(quiver_ainq::Error::Malformed("key of a condition"));
        read.map_err(|_| malformed())?;
        UnverifiedIdentityKey::decode(bytes.as_slice()).map_err(|_| malformed())
    }

    /// The conditions whose keys are told of.
    pub fn conditions(&self) -> Vec<Condition> {
        self.keys.iter().filter_map(|line| line.condition.parse().ok()).collect()
    }

    /// Checks that the request succeeded.
    ///
    /// # Errors
    /// [`Error::NotReleased`], [`Error::TooFewShares`].
    pub fn check(&self) -> Result<()> {
        match &self.failed {
            None => Ok(()),
            Some((words, true)) => Err(Error::NotReleased(words.clone())),
            Some((words, false)) => Err(Error::TooFewShares(words.clone())),
        }
    }
}

/// Answers a call for the drone with this key. Without a key only what is kept is answered.
///
/// # Errors
/// [`DroneError::NotEnrolled`], and those of [`collection::key`] but [`Error::NotReleased`] and
/// [`Error::TooFewShares`], which are in the report.
pub async fn answer(
    keys: &IdentityKeys,
    keypair: Option<&DroneKeypair<Ristretto255>>,
    plan: &FetchPlan,
    call: &KeyCall,
) -> Result<KeyReport> {
    match attempt(keys, keypair, plan, call).await {
        Err(Error::NotReleased(words)) => {
            Ok(KeyReport { failed: Some((words, true)), ..KeyReport::default() })
        }
        Err(Error::TooFewShares(words)) => {
            Ok(KeyReport { failed: Some((words, false)), ..KeyReport::default() })
        }
        answered => answered,
    }
}

async fn attempt(
    keys: &IdentityKeys,
    keypair: Option<&DroneKeypair<Ristretto255>>,
    plan: &FetchPlan,
    call: &KeyCall,
) -> Result<KeyReport> {
    let enrolled = || keypair.ok_or(DroneError::NotEnrolled("enrol first"));
    let told = |authority: &ReleaseAuthority<Ristretto255>| Some(hex::encode(authority.statement().bytes()));
    match call {
        KeyCall::Key { condition, wait } => {
            let condition: Condition = condition.parse().map_err(Error::Condition)?;
            let wait = Duration::from_secs(*wait);
            let (authority, key) = collection::key(keys, enrolled()?, plan, &condition, wait).await?;
            let point = quiver_ibe::IdentityPoint::of(&condition);
            let key = key.verify(authority.master(), &point).map_err(Error::Condition)?;
            let line =
                KeyLine { condition: condition.to_string(), key: Some(hex::encode(key.encode().as_slice())) };
            Ok(KeyReport { statement: told(&authority), keys: vec![line], failed: None })
        }
        KeyCall::Authority => {
            let authority = match keys.authority()? {
                Some(known) => known,
                None => collection::authority(keys, enrolled()?, plan).await?,
            };
            Ok(KeyReport { statement: told(&authority), ..KeyReport::default() })
        }
        KeyCall::List => {
            let conditions = keys.conditions()?.into_iter();
            let keys_kept =
                conditions.map(|condition| KeyLine { condition: condition.to_string(), key: None }).collect();
            let statement = keys.authority()?.as_ref().and_then(told);
            Ok(KeyReport { statement, keys: keys_kept, failed: None })
        }
    }
}
