//! Envelopes for the programs of edges and leaders: sealing and opening files, and sending to the group.
//!
//! The same work is done in the running service, which has the state file open, and without one, by any
//! program that can open the file.

use std::fmt::Display;

use quiver_ainq::{Deployment, DroneKeypair, RevocationStatement, Ristretto255};
use quiver_attribute_schemes::SchemeKind;
use quiver_delivery::attributes::KIND;
use quiver_envelope::{AttributeAccess, AttributeKeys, DroneSigner, DroneVerifier, EnvelopeCommand};
use quiver_service::clock;
use quiver_service::drone::Error as DroneError;
use quiver_service::drone::keys::Keys;
use quiver_service::drone::running::DroneIdentity;
use quiver_service::keyring::{self, Keyring, KeyringEntry};

use crate::job::{Job, OpenJob, SealJob, SendJob};
use crate::{Error, Result, authority, files};

/// Keys with which envelopes are sealed and opened.
#[derive(Debug)]
pub struct Holder {
    /// The deployment.
    pub deployment: Deployment<Ristretto255>,
    /// Authorities and keys.
    pub keyring: Keyring<Ristretto255>,
    /// The drone's own key, if it has enrolled and the state file is at hand.
    pub keypair: Option<DroneKeypair<Ristretto255>>,
    /// The newest revocation list known.
    pub revocations: RevocationStatement,
}

impl Holder {
    /// The drone of this identity, with its keyring.
    ///
    /// # Errors
    /// [`DroneError::Keyring`].
    pub fn new(keys: &Keys, DroneIdentity { keypair, revocations }: DroneIdentity) -> Result<Self> {
        Ok(Self { deployment: keys.deployment().clone(), keyring: keys.keyring()?, keypair, revocations })
    }

    /// A caller without a state file: seals without a signature, and opens with keys that are files.
    #[must_use]
    pub fn nobody(deployment: Deployment<Ristretto255>) -> Self {
        let (keyring, revocations) = (Keyring::default(), RevocationStatement::empty());
        Self { deployment, keyring, keypair: None, revocations }
    }

    /// Does a job, and returns what to tell. Takes as long as files take to read and write.
    ///
    /// # Errors
    /// [`Error::Target`] with the place in the text, [`Error::Authority`], [`Error::NotSatisfied`],
    /// [`Error::Envelope`], [`DroneError::NotEnrolled`], and those of files.
    pub fn perform(&self, job: &Job) -> Result<String> {
        match job {
            Job::Seal(job) => self.seal(job),
            Job::Open(job) => self.open(job),
        }
    }

    /// The command that has a machine seal and send this.
    ///
    /// # Errors
    /// [`Error::Target`] with the place in the text, [`Error::Authority`].
    pub fn command(&self, job: SendJob) -> Result<EnvelopeCommand> {
        let entries: Vec<_> = self.keyring.entries_of(KIND).collect();
        let known = authority::choose(&entries, &job.to)?;
        let target = known.target(&job.to.target)?;
        let authority = *known.parameters.authority().as_bytes();
        Ok(EnvelopeCommand::Seal { authority, target, data: job.text.into_bytes(), signed: job.signed })
    }

    fn seal(&self, job: &SealJob) -> Result<String> {
        let keypair = self.keypair.as_ref().filter(|_| job.signed);
        if job.signed && keypair.is_none() {
            return Err(DroneError::NotEnrolled("give --unsigned to seal without a signature").into());
        }
        let signer = keypair.map(|keypair| DroneSigner::new(&self.deployment, keypair));
        let file = job.authority_file.as_ref().map(|path| keyring::read_authority(path, &self.deployment));
        let file = file.transpose()?.map(|authority| KeyringEntry { authority, key: None });
        let entries: Vec<_> = match &file {
            Some(entry) => vec![entry],
            None => self.keyring.entries_of(KIND).collect(),
        };
        let known = authority::choose(&entries, &job.to)?;
        let target = known.target(&job.to.target)?;
        let bytes = files::seal(&job.input, &job.output, (&known.parameters, &target), signer)?;
        let by = keypair.map_or_else(
            || "NOT SIGNED".into(),
            |keypair| format!("signed by {}", keypair.public().identity.name),
        );
        let (path, name, scheme) = (job.output.display(), known.name, known.parameters.scheme());
        Ok(format!("sealed {bytes} bytes into {path} under {name} ({scheme}), {by}"))
    }

    fn open(&self, job: &OpenJob) -> Result<String> {
        let given = job.keys.iter().map(|path| keyring::read_key(path, &self.deployment));
        let given = given.collect::<std::result::Result<Vec<_>, _>>()?;
        let entries: Vec<_> = match given.is_empty() {
            true => self.keyring.entries_of(KIND).collect(),
            false => given.iter().collect(),
        };
        let verifier = DroneVerifier::new(&self.deployment, &self.revocations, clock::unix_now());
        let opened = files::open(&job.input, &job.output, &entries, &verifier)?;
        let from = match opened.author {
            Some(author) => format!("signed by {}", author.name),
            None => "UNAUTHENTICATED: nobody signed it, its source is not known".into(),
        };
        let (bytes, path, made) = (opened.bytes, job.output.display(), clock::format(opened.created));
        Ok(format!("opened {bytes} bytes into {path}, sealed {made}, {from}"))
    }
}

/// Decodes the attribute keys of a keyring for a machine. Those it cannot use are logged and left out.
pub fn attribute_keys(keyring: &Keyring<Ristretto255>) -> AttributeKeys {
    let access = keyring.entries_of(KIND).filter_map(|entry| match access(entry) {
        Ok(access) => Some(access),
        Err(error) => {
            tracing::warn!("not used: {error}");
            None
        }
    });
    AttributeKeys::new(access.collect())
}

fn access(entry: &KeyringEntry<Ristretto255>) -> Result<AttributeAccess> {
    let named = |error: &dyn Display| Error::authority(&entry.authority.name, error);
    SchemeKind::from_id(entry.authority.scheme.as_str()).map_err(|error| named(&error))?;
    AttributeAccess::of(entry).map_err(|error| named(&error))
}
