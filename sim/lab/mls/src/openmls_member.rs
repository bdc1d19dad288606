//! A member of a group by `openmls` over libcrux, and what its commits send.
//!
//! The choices are those of the other library: basic credentials, signed public messages, changes by value, the tree
//! beside the `Welcome`, past epochs forgotten. Two things are this library's own. Its storage is a part of every step:
//! a commit writes the whole tree as JSON, in memory here, and that time is counted. And it encrypts to several members
//! at a time on threads of their own; here one thread does all, so that its processor time is that of the work.

use std::fmt::Display;
use std::sync::Arc;

use openmls::prelude::tls_codec::{Deserialize as _, Serialize as _};
use openmls::prelude::{
    BasicCredential, Capabilities, Ciphersuite, CredentialWithKey, KeyPackage, LeafNodeIndex, MlsGroup,
    MlsGroupJoinConfig, MlsMessageBodyIn, MlsMessageIn, MlsMessageOut, OpenMlsCrypto as _,
    OpenMlsProvider as _, PURE_PLAINTEXT_WIRE_FORMAT_POLICY, ProcessedMessageContent, ProtocolVersion,
    RatchetTreeIn, SignatureScheme, StagedWelcome,
};
use openmls_libcrux_crypto::Provider;
use openmls_traits::signatures::{Signer, SignerError};
use rayon::{ThreadPool, ThreadPoolBuilder};
use zeroize::Zeroizing;

use crate::library::{GroupCandidate, GroupMember};
use crate::member::{CommitChanges, CommitMessages, Invitation, SECRET_LEN};
use crate::{Error, Result};

/// Ciphersuite of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMlsSuite {
    /// `MLS_128_DHKEMX25519_AES128GCM_SHA256_Ed25519`, the mandatory one.
    X25519,
    /// `MLS_256_XWING_CHACHA20POLY1305_SHA256_Ed25519` of draft-ietf-mls-pq-ciphersuites: ML-KEM-768 and X25519.
    XWing,
}

impl OpenMlsSuite {
    const fn ciphersuite(self) -> Ciphersuite {
        match self {
            Self::X25519 => Ciphersuite::MLS_128_DHKEMX25519_AES128GCM_SHA256_Ed25519,
            Self::XWing => Ciphersuite::MLS_256_XWING_CHACHA20POLY1305_SHA256_Ed25519,
        }
    }

    fn capabilities(self) -> Capabilities {
        Capabilities::builder().ciphersuites(vec![self.ciphersuite()]).build()
    }
}

thread_local! {
    /// Pool whose only thread is this one.
    static ALONE: Option<ThreadPool> = ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().ok();
}

/// Keeps what the library would spread over threads on this one.
fn keep_on_this_thread() -> Result<()> {
    ALONE.with(|pool| pool.as_ref().map(drop)).ok_or_else(|| Error::OpenMls("no pool of one thread".into()))
}

fn refused(error: impl Display) -> Error {
    Error::OpenMls(error.to_string())
}

fn message(bytes: &[u8]) -> Result<MlsMessageIn> {
    MlsMessageIn::tls_deserialize_exact(bytes).map_err(refused)
}

/// Signing key, with the provider that signs by it.
struct SigningKey {
    provider: Arc<Provider>,
    secret: Zeroizing<Vec<u8>>,
}

impl Signer for SigningKey {
    fn sign(&self, payload: &[u8]) -> Result<Vec<u8>, SignerError> {
        let signed = self.provider.crypto().sign(self.signature_scheme(), payload, &self.secret);
        signed.map_err(SignerError::CryptoError)
    }

    fn signature_scheme(&self) -> SignatureScheme {
        SignatureScheme::ED25519
    }
}

/// Provider, signing key and credential of a name.
fn identity(name: &str) -> Result<(Arc<Provider>, SigningKey, CredentialWithKey)> {
    keep_on_this_thread()?;
    let provider = Arc::new(Provider::new().map_err(refused)?);
    let keys = provider.crypto().signature_key_gen(SignatureScheme::ED25519).map_err(refused)?;
    let (secret, public) = (Zeroizing::new(keys.0), keys.1);
    let credential = BasicCredential::new(name.as_bytes().to_vec()).into();
    let credential = CredentialWithKey { credential, signature_key: public.into() };
    Ok((Arc::clone(&provider), SigningKey { provider, secret }, credential))
}

/// Joining member of `openmls`. Its keys are good for one welcome, which consumes them.
pub struct OpenMlsCandidate {
    provider: Arc<Provider>,
    signer: Arc<SigningKey>,
    key_package: Vec<u8>,
}

impl GroupCandidate for OpenMlsCandidate {
    type Member = OpenMlsMember;

    fn new(name: &str, suite: &OpenMlsSuite) -> Result<Self> {
        let (provider, signer, credential) = identity(name)?;
        let builder = KeyPackage::builder().leaf_node_capabilities(suite.capabilities());
        let made = builder.build(suite.ciphersuite(), &*provider, &signer, credential).map_err(refused)?;
        let key_package = MlsMessageOut::from(made.key_package().clone()).to_bytes().map_err(refused)?;
        Ok(Self { provider, signer: Arc::new(signer), key_package })
    }

    fn key_package(&self) -> &[u8] {
        &self.key_package
    }

    fn join(&self, invitation: &Invitation) -> Result<OpenMlsMember> {
        keep_on_this_thread()?;
        let MlsMessageBodyIn::Welcome(welcome) = message(&invitation.welcome)?.extract() else {
            return Err(Error::NoInvitation);
        };
        let tree = RatchetTreeIn::tls_deserialize_exact(&invitation.tree).map_err(refused)?;
        let config = MlsGroupJoinConfig::builder()
            .wire_format_policy(PURE_PLAINTEXT_WIRE_FORMAT_POLICY)
            .use_ratchet_tree_extension(false)
            .build();
        let staged = StagedWelcome::new_from_welcome(&*self.provider, &config, welcome, Some(tree));
        let group = staged.map_err(refused)?.into_group(&*self.provider).map_err(refused)?;
        Ok(OpenMlsMember { provider: Arc::clone(&self.provider), signer: Arc::clone(&self.signer), group })
    }
}

/// Member of a group of `openmls`.
pub struct OpenMlsMember {
    provider: Arc<Provider>,
    signer: Arc<SigningKey>,
    group: MlsGroup,
}

impl OpenMlsMember {
    fn checked(&self, key_package: &[u8]) -> Result<KeyPackage> {
        match message(key_package)?.extract() {
            MlsMessageBodyIn::KeyPackage(package) => {
                package.validate(self.provider.crypto(), ProtocolVersion::Mls10).map_err(refused)
            }
            _ => Err(refused("no key package")),
        }
    }
}

impl GroupMember for OpenMlsMember {
    type Setup = OpenMlsSuite;
    type Candidate = OpenMlsCandidate;

    fn found(name: &str, suite: &OpenMlsSuite) -> Result<Self> {
        let (provider, signer, credential) = identity(name)?;
        let builder = MlsGroup::builder()
            .ciphersuite(suite.ciphersuite())
            .with_capabilities(suite.capabilities())
            .with_wire_format_policy(PURE_PLAINTEXT_WIRE_FORMAT_POLICY)
            .use_ratchet_tree_extension(false);
        let group = builder.build(&*provider, &signer, credential).map_err(refused)?;
        Ok(Self { provider, signer: Arc::new(signer), group })
    }

    fn commit(&mut self, change: CommitChanges<'_>) -> Result<CommitMessages> {
        keep_on_this_thread()?;
        let added: Vec<KeyPackage> =
            change.added.iter().map(|bytes| self.checked(bytes)).collect::<Result<_>>()?;
        let provider = &*self.provider;
        // RFC 9420, 12.4: additions alone need no path; removals have one anyway.
        let builder = self.group.commit_builder().force_self_update(change.added.is_empty());
        let builder = builder
            .propose_removals(change.removed.iter().map(|leaf| LeafNodeIndex::new(*leaf)))
            .propose_adds(added)
            .load_psks(provider.storage())
            .map_err(refused)?;
        let built =
            builder.build(provider.rand(), provider.crypto(), &*self.signer, |_| true).map_err(refused)?;
        let (commit, welcome, _) = built.stage_commit(provider).map_err(refused)?.into_messages();
        let commit = commit.to_bytes().map_err(refused)?;
        self.group.merge_pending_commit(provider).map_err(refused)?;
        let invitation = match welcome {
            Some(welcome) => Some(Invitation {
                welcome: welcome.to_bytes().map_err(refused)?,
                tree: self.group.export_ratchet_tree().tls_serialize_detached().map_err(refused)?,
            }),
            None => None,
        };
        Ok(CommitMessages { commit, invitation })
    }

    fn follow(&mut self, commit: &[u8]) -> Result<bool> {
        keep_on_this_thread()?;
        let message = message(commit)?.try_into_protocol_message().map_err(refused)?;
        let processed = self.group.process_message(&*self.provider, message).map_err(refused)?;
        let ProcessedMessageContent::StagedCommitMessage(staged) = processed.into_content() else {
            return Err(Error::NoCommit);
        };
        let stays = !staged.self_removed();
        self.group.merge_staged_commit(&*self.provider, *staged).map_err(refused)?;
        Ok(stays)
    }

    fn secret(&self) -> Result<[u8; SECRET_LEN]> {
        let secret = self.group.export_secret(self.provider.crypto(), "quiver", &[], SECRET_LEN);
        Zeroizing::new(secret.map_err(refused)?).as_slice().try_into().map_err(|_| Error::Length)
    }

    fn epoch(&self) -> u64 {
        self.group.epoch().as_u64()
    }
}
