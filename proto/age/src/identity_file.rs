//! Identities as the lines of a file, as `age` and `rage` read them with `--identity`.
//!
//! Empty lines and lines that start with `#` are ignored. A program that writes such a file gives it mode
//! 0600.

use quiver_crypto::Zeroizing;

use crate::bech::IDENTITY;
use crate::{Error, Identity, Result};

/// The longest file, in bytes.
pub const LIMIT: u64 = 1 << 20;

/// The content of a file with these identities. Secret.
pub fn render(identities: &[Identity]) -> Zeroizing<String> {
    let texts: Vec<_> = identities.iter().map(Identity::to_text).collect();
    let comment = "# Keys of Quiver. Whoever reads this file opens what is encrypted to:\n";
    let mut public = String::from(comment);
    for identity in identities {
        for recipient in identity.recipients() {
            public.push_str(&format!("#   {}\n#     {recipient}\n", recipient.condition()));
        }
    }
    // Room for all of it from the start: a growing string would leave copies behind.
    let room = public.len() + texts.iter().map(|text| text.len() + 1).sum::<usize>();
    let mut content = Zeroizing::new(String::with_capacity(room));
    content.push_str(&public);
    for text in &texts {
        content.push_str(text);
        content.push('\n');
    }
    content
}

/// Returns true if a line begins as an identity does.
#[must_use]
pub fn has_keys(content: &str) -> bool {
    content.lines().any(|line| IDENTITY.begins(line))
}

/// Reads the content of a file.
///
/// # Errors
/// [`Error::IdentityLine`] for the first line that is none, and for a file without one.
pub fn parse(content: &str) -> Result<Vec<Identity>> {
    let mut identities = Vec::new();
    for (index, line) in content.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let reason = |error: Error| match error {
            Error::Text { reason, .. } => reason.into(),
            other => other.to_string(),
        };
        let wrong = |error: Error| Error::IdentityLine { line: index + 1, reason: reason(error) };
        identities.push(line.parse().map_err(wrong)?);
    }
    if identities.is_empty() {
        return Err(Error::IdentityLine { line: 1, reason: "the file has no identity".into() });
    }
    Ok(identities)
}
