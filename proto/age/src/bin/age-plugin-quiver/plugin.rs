//! The two state machines of age's plugin protocol.

use std::collections::{HashMap, HashSet};
use std::io;

use age_core::format::{FileKey, Stanza};
use age_plugin::identity::{self, IdentityPluginV1};
use age_plugin::recipient::{self, RecipientPluginV1};
use age_plugin::{Callbacks, PluginHandler};
use quiver_age::{Identity, PLUGIN_NAME, Recipient};

/// Starts them.
pub(crate) struct Handler;

impl PluginHandler for Handler {
    type RecipientV1 = Wrapping;
    type IdentityV1 = Unwrapping;

    fn recipient_v1(self) -> io::Result<Wrapping> {
        Ok(Wrapping::default())
    }

    fn identity_v1(self) -> io::Result<Unwrapping> {
        Ok(Unwrapping::default())
    }
}

fn refuse_other_name(name: &str) -> Result<(), String> {
    let ours = name == PLUGIN_NAME;
    ours.then_some(()).ok_or_else(|| format!("this is the plugin `{PLUGIN_NAME}`, not `{name}`"))
}

/// Encrypts file keys.
#[derive(Default)]
pub(crate) struct Wrapping {
    recipients: Vec<Recipient>,
}

impl RecipientPluginV1 for Wrapping {
    fn add_recipient(
        &mut self,
        index: usize,
        plugin_name: &str,
        bytes: &[u8],
    ) -> Result<(), recipient::Error> {
        let wrong = |message| recipient::Error::Recipient { index, message };
        refuse_other_name(plugin_name).map_err(wrong)?;
        self.recipients.push(Recipient::decode(bytes).map_err(|error| wrong(error.to_string()))?);
        Ok(())
    }

    fn add_identity(
        &mut self,
        index: usize,
        plugin_name: &str,
        bytes: &[u8],
    ) -> Result<(), recipient::Error> {
        let wrong = |message| recipient::Error::Identity { index, message };
        refuse_other_name(plugin_name).map_err(wrong)?;
        let identity = Identity::decode(bytes).map_err(|error| wrong(error.to_string()))?;
        self.recipients.extend(identity.recipients());
        Ok(())
    }

    fn labels(&mut self) -> HashSet<String> {
        HashSet::new()
    }

    fn wrap_file_keys(
        &mut self,
        file_keys: Vec<FileKey>,
        _: impl Callbacks<recipient::Error>,
    ) -> io::Result<Result<Vec<Vec<Stanza>>, Vec<recipient::Error>>> {
        let wrap = |file_key| self.recipients.iter().map(|recipient| recipient.wrap(file_key)).collect();
        let wrapped: quiver_age::Result<_> = file_keys.iter().map(wrap).collect();
        Ok(wrapped.map_err(|error| vec![recipient::Error::Internal { message: error.to_string() }]))
    }
}

/// Decrypts file keys.
#[derive(Default)]
pub(crate) struct Unwrapping {
    identities: Vec<Identity>,
}

impl IdentityPluginV1 for Unwrapping {
    fn add_identity(&mut self, index: usize, plugin_name: &str, bytes: &[u8]) -> Result<(), identity::Error> {
        let wrong = |message| identity::Error::Identity { index, message };
        refuse_other_name(plugin_name).map_err(wrong)?;
        self.identities.push(Identity::decode(bytes).map_err(|error| wrong(error.to_string()))?);
        Ok(())
    }

    fn unwrap_file_keys(
        &mut self,
        files: Vec<Vec<Stanza>>,
        _: impl Callbacks<identity::Error>,
    ) -> io::Result<HashMap<usize, Result<FileKey, Vec<identity::Error>>>> {
        let unwrapped = files
            .iter()
            .enumerate()
            .filter_map(|(index, stanzas)| Some((index, self.unwrap(index, stanzas)?)));
        Ok(unwrapped.collect())
    }
}

impl Unwrapping {
    /// The key of one file; `None` if no identity here has it.
    fn unwrap(&self, file_index: usize, stanzas: &[Stanza]) -> Option<Result<FileKey, Vec<identity::Error>>> {
        let mut wrongs = Vec::new();
        for identity in &self.identities {
            for (stanza_index, stanza) in stanzas.iter().enumerate() {
                let wrong = |error: quiver_age::Error| {
                    vec![identity::Error::Stanza { file_index, stanza_index, message: error.to_string() }]
                };
                match identity.unwrap(stanza) {
                    Some(Ok(key)) => return Some(Ok(key)),
                    // Another stanza, or another identity, may open it all the same.
                    Some(Err(error)) => wrongs.extend(wrong(error)),
                    None => {}
                }
            }
        }
        (!wrongs.is_empty()).then_some(Err(wrongs))
    }
}
