//! A member of a group, and what its commits send.

use mls_rs::client_builder::{BaseConfig, WithCryptoProvider, WithIdentityProvider, WithMlsRules};
use mls_rs::group::{CommitEffect, ExportedTree, ReceivedMessage};
use mls_rs::identity::SigningIdentity;
use mls_rs::identity::basic::{BasicCredential, BasicIdentityProvider};
use mls_rs::mls_rules::{CommitOptions, DefaultMlsRules};
use mls_rs::{CipherSuiteProvider, Client, Group, MlsMessage};

use crate::provider::{CIPHERSUITE, Provider};
use crate::{Error, Result};

type Config = WithIdentityProvider<
    BasicIdentityProvider,
    WithCryptoProvider<Provider, WithMlsRules<DefaultMlsRules, BaseConfig>>,
>;

/// Index of a member's leaf; the founder has 0.
pub type Leaf = u32;

/// Bytes of what [`MlsMember::secret`] exports.
pub const SECRET_LEN: usize = 32;

/// A joining member: a signing key and one published key package.
pub struct Candidate {
    client: Client<Config>,
    key_package: Vec<u8>,
}

impl Candidate {
    /// Makes the keys and signs the key package.
    ///
    /// # Errors
    /// [`Error::Provider`] without randomness.
    pub fn new(name: &str, provider: &Provider) -> Result<Self> {
        let client = client(name, provider)?;
        let key_package =
            client.generate_key_package_message(Default::default(), Default::default(), None)?.to_bytes()?;
        Ok(Self { client, key_package })
    }

    /// Key package for a committer, serialised (286 bytes with a name of 14).
    #[must_use]
    pub fn key_package(&self) -> &[u8] {
        &self.key_package
    }

    /// Joins the group that a commit added it to: checks the whole tree, every member's signature included.
    /// Its keys are good for one group, and for trying again until the member is saved.
    ///
    /// # Errors
    /// [`Error::Mls`] if the welcome is for others or the tree does not hold.
    pub fn join(&self, invitation: &Invitation) -> Result<MlsMember> {
        let tree = ExportedTree::from_bytes(&invitation.tree)?;
        let welcome = MlsMessage::from_bytes(&invitation.welcome)?;
        let (group, _) = self.client.join_group(Some(tree), &welcome, None)?;
        Ok(MlsMember { client: self.client.clone(), group })
    }
}

/// Changes of a commit. None at all means fresh keys.
#[derive(Clone, Copy, Debug, Default)]
pub struct CommitChanges<'a> {
    /// Leaves to remove.
    pub removed: &'a [Leaf],
    /// Key packages to add.
    pub added: &'a [&'a [u8]],
}

/// Messages of a commit, serialised as on the wire.
#[derive(Clone, Debug)]
pub struct CommitMessages {
    /// Commit for all earlier members of the group.
    pub commit: Vec<u8>,
    /// Invitation for the newcomers, if there are any.
    pub invitation: Option<Invitation>,
}

/// Message to newcomers, the same bytes for all of them.
#[derive(Clone, Debug)]
pub struct Invitation {
    /// The `Welcome`: one encrypted group secret per newcomer, and the group info.
    pub welcome: Vec<u8>,
    /// The ratchet tree, which a newcomer cannot do without.
    pub tree: Vec<u8>,
}

impl Invitation {
    /// Bytes of both.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    #[must_use]
    pub fn len(&self) -> usize {
        self.welcome.len() + self.tree.len()
    }
}

/// A member with its own copy of the tree. Any member can commit.
pub struct MlsMember {
    client: Client<Config>,
    group: Group<Config>,
}

impl MlsMember {
    /// Founds a group and is alone in it.
    ///
    /// # Errors
    /// [`Error::Provider`] without randomness.
    pub fn found(name: &str, provider: &Provider) -> Result<Self> {
        let client = client(name, provider)?;
        let group = client.create_group(Default::default(), Default::default(), None)?;
        Ok(Self { client, group })
    }

    /// Checks the key packages, commits, serialises and applies its own commit.
    ///
    /// The tree on the committer's path is renewed unless there are only additions, which do not need it (RFC
    /// 9420, section 12.4).
    ///
    /// # Errors
    /// [`Error::Mls`] for a bad key package or an empty leaf; the group is as it was.
    pub fn commit(&mut self, change: CommitChanges<'_>) -> Result<CommitMessages> {
        let mut builder = self.group.commit_builder();
        for leaf in change.removed {
            builder = builder.remove_member(*leaf)?;
        }
        for key_package in change.added {
            builder = builder.add_member(MlsMessage::from_bytes(key_package)?)?;
        }
        let output = builder.build()?;
        let invitation = match (output.welcome_messages(), output.ratchet_tree()) {
            ([welcome], Some(tree)) => {
                Some(Invitation { welcome: welcome.to_bytes()?, tree: tree.to_bytes()? })
            }
            _ => None,
        };
        let commit = output.commit_message().to_bytes()?;
        self.group.apply_pending_commit()?;
        Ok(CommitMessages { commit, invitation })
    }

    /// Applies another member's commit. False if it removed this member.
    ///
    /// # Errors
    /// [`Error::Mls`] if the commit is not for this epoch or does not hold, [`Error::NoCommit`] if it is
    /// another message; the group is as it was.
    pub fn follow(&mut self, commit: &[u8]) -> Result<bool> {
        let message = MlsMessage::from_bytes(commit)?;
        let ReceivedMessage::Commit(commit) = self.group.process_incoming_message(message)? else {
            return Err(Error::NoCommit);
        };
        Ok(!matches!(commit.effect, CommitEffect::Removed { .. }))
    }

    /// A secret that the members of this epoch alone share.
    ///
    /// # Errors
    /// [`Error::Mls`] if the exporter fails.
    pub fn secret(&self) -> Result<[u8; SECRET_LEN]> {
        let secret = self.group.export_secret(b"quiver", &[], SECRET_LEN)?;
        secret.as_bytes().try_into().map_err(|_| Error::Length)
    }

    /// The epoch, from 0.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.group.current_epoch()
    }

    /// Number of members of the group, this one included.
    #[must_use]
    pub fn members(&self) -> usize {
        self.group.roster().members_iter().count()
    }

    /// Leaf of this member.
    #[must_use]
    pub fn leaf(&self) -> Leaf {
        self.group.current_member_index()
    }

    /// Remembers the state, for [`Self::restored`].
    ///
    /// # Errors
    /// [`Error::Mls`] if it cannot be encoded.
    pub fn save(&mut self) -> Result<()> {
        Ok(self.group.write_to_storage()?)
    }

    /// Restores the member as it was when it was saved last.
    ///
    /// # Errors
    /// [`Error::Mls`] if it never was.
    pub fn restored(&self) -> Result<Self> {
        let group = self.client.load_group(self.group.group_id())?;
        Ok(Self { client: self.client.clone(), group })
    }
}

impl std::fmt::Debug for Candidate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Candidate").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for MlsMember {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MlsMember")
            .field("leaf", &self.leaf())
            .field("epoch", &self.epoch())
            .finish_non_exhaustive()
    }
}

fn client(name: &str, provider: &Provider) -> Result<Client<Config>> {
    let suite = provider.suite();
    let (secret, public) = suite.signature_key_generate()?;
    let credential = BasicCredential::new(name.as_bytes().to_vec()).into_credential();
    // The tree goes beside the welcome: within it, every newcomer's secret would be encrypted over all of it.
    let options = CommitOptions::new().with_ratchet_tree_extension(false);
    Ok(Client::builder()
        .mls_rules(DefaultMlsRules::new().with_commit_options(options))
        .crypto_provider(provider.clone())
        .identity_provider(BasicIdentityProvider)
        .signing_identity(SigningIdentity::new(credential, public), secret, CIPHERSUITE)
        .build())
}
