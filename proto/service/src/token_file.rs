//! The token a drone enrols with, checked as far as the drone itself can.

use std::path::Path;

use quiver_ainq::{Deployment, IssuedToken, Ristretto255, Role};

use crate::armour::{self, ArmourKind};
use crate::{Error, Result, clock};

/// The kind of drone that a token is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenRole {
    /// An edge.
    Edge,
    /// A leader.
    Leader,
}

/// Reads a token of this deployment for this kind of drone. An expired one is only warned of: the KGC's clock
/// decides, a drone's may be wrong.
///
/// # Errors
/// [`Error::Garbled`] saying what does not fit, and those of [`armour::read`].
pub fn read(
    path: &Path,
    deployment: &Deployment<Ristretto255>,
    wanted: TokenRole,
) -> Result<IssuedToken<Ristretto255>> {
    check(&armour::read(path, ArmourKind::Token)?, path, deployment, wanted)
}

/// The same of a token that came otherwise than in a file: its text. Errors name its `origin` as their path.
///
/// # Errors
/// [`Error::Garbled`] saying what does not fit, [`Error::TooLarge`].
pub fn read_text(
    text: &[u8],
    origin: &Path,
    deployment: &Deployment<Ristretto255>,
    wanted: TokenRole,
) -> Result<IssuedToken<Ristretto255>> {
    check(&armour::read_text(text, ArmourKind::Token, origin)?, origin, deployment, wanted)
}

fn check(
    bytes: &[u8],
    path: &Path,
    deployment: &Deployment<Ristretto255>,
    wanted: TokenRole,
) -> Result<IssuedToken<Ristretto255>> {
    let wrong = |what: String| Error::Garbled { path: path.into(), what };
    let token = IssuedToken::<Ristretto255>::decode(bytes)
        .map_err(|error| wrong(format!("the token is garbled: {error}")))?;
    let statement = &token.token.statement;
    if statement.master != *deployment.master() {
        return Err(wrong(format!("the token is for another deployment than {}", deployment.name())));
    }
    match (&statement.role, wanted) {
        (Role::Edge, TokenRole::Leader) => {
            return Err(wrong("the token is an edge's; use it with `edge`".into()));
        }
        (Role::Leader { .. }, TokenRole::Edge) => {
            return Err(wrong("the token is a leader's; use it with `leader`".into()));
        }
        _ => {}
    }
    if statement.expiry < clock::unix_now() {
        let expiry = clock::format(statement.expiry);
        tracing::warn!(expiry, "the token has expired by this machine's clock; the KGC will refuse it");
    }
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private_file;
    use quiver_ainq::suite::BLS12381G1_ID;
    use quiver_ainq::{MasterSecret, Name, OperatorSecretKey, Suite as _, TokenGrant};
    use rand::rngs::OsRng;

    fn deployment() -> Deployment<Ristretto255> {
        Deployment::new(Name::new("alps").expect("name"), MasterSecret::generate(&mut OsRng).public())
    }

    #[test]
    fn token_for_another_deployment_role_or_suite_is_refused_in_words() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("edge-1.token");
        let ours = deployment();
        let grant = TokenGrant {
            name: Name::new("edge-1").expect("name"),
            role: Role::Edge,
            groups: Vec::new(),
            not_after: u64::MAX,
            expiry: u64::MAX,
        };
        let issued = OperatorSecretKey::<Ristretto255>::generate(&mut OsRng)
            .issue(&ours, grant, &mut OsRng)
            .expect("issue");
        armour::write_new(&path, ArmourKind::Token, &issued.encode()).expect("write");
        assert_eq!(read(&path, &ours, TokenRole::Edge).expect("good").token, issued.token);
        let (text, origin) = (std::fs::read(&path).expect("read"), Path::new("the token"));
        assert_eq!(read_text(&text, origin, &ours, TokenRole::Edge).expect("good").token, issued.token);
        let error = read_text(&text[1..], origin, &ours, TokenRole::Edge).expect_err("refused").to_string();
        assert!(error.starts_with("the token: this is not a token"), "{error}");
        let refusal = |deployment: &Deployment<Ristretto255>, wanted| {
            read(&path, deployment, wanted).expect_err("refused").to_string()
        };
        assert!(refusal(&deployment(), TokenRole::Edge).contains("another deployment"));
        assert!(refusal(&ours, TokenRole::Leader).contains("use it with `edge`"));
        let other = directory.path().join("other.token");
        let reserved = String::from_utf8_lossy(&text).replace(Ristretto255::ID, BLS12381G1_ID);
        private_file::write_new(&other, reserved.as_bytes()).expect("write");
        let refused = read(&other, &ours, TokenRole::Edge).expect_err("refused").to_string();
        assert!(refused.contains("other.token: it is of suite bls12-381-g1"), "{refused}");
        let cut = directory.path().join("cut.token");
        let bytes = issued.encode();
        armour::write_new(&cut, ArmourKind::Token, &bytes[..bytes.len() - 1]).expect("write");
        assert!(read(&cut, &ours, TokenRole::Edge).expect_err("refused").to_string().contains("garbled"));
    }
}
