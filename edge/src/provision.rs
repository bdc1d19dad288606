//! `edge provision`: prints the line that sets up a board at its console.

use quiver_ainq::Name;
use quiver_group::edge::{Provisioning, RadioPlace};
use quiver_service::clock;
use quiver_service::deployment_file::DeploymentFile;
use quiver_service::drone::{Error, Result};
use quiver_service::token_file::{self, TokenRole};

use crate::cli::ProvisionArgs;

/// The line. It holds the token's secret.
pub(crate) fn line(args: &ProvisionArgs) -> Result<String> {
    let file = DeploymentFile::read(&args.deployment)?;
    let deployment = file.pin()?;
    let token = token_file::read(&args.token, &deployment, TokenRole::Edge)?;
    let group = group(args.group.as_ref(), &token.token.statement.groups)?;
    let radio = args.radio.map(|RadioArgument(place)| place);
    let (kgcs, time) = (file.kgc_ids(), clock::unix_now());
    let settings = Provisioning { deployment, kgcs, group, time, radio, kem: file.kem, token: Some(token) };
    Ok(format!("provision {}", hex::encode(&*settings.encode())))
}

/// The group given, if the token allows it; else the only one in the token.
fn group(given: Option<&Name>, allowed: &[Name]) -> Result<Option<Name>> {
    match (given, allowed) {
        (Some(group), allowed) if allowed.contains(group) => Ok(Some(group.clone())),
        (Some(group), _) => Err(Error::config(format!("the token does not allow group {group}"))),
        (None, [only]) => Ok(Some(only.clone())),
        (None, _) => Err(Error::config("which group? give --group")),
    }
}

/// `PAN:ADDRESS`, both hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RadioArgument(RadioPlace);

impl std::str::FromStr for RadioArgument {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let form = || "not of the form PAN:ADDRESS, both with one to four hexadecimal digits".to_string();
        let (pan, address) = text.split_once(':').ok_or_else(form)?;
        let number = |digits: &str| {
            let plain =
                (1..=4).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            u16::from_str_radix(digits, 16).ok().filter(|_| plain).ok_or_else(form)
        };
        let place = RadioPlace { pan: number(pan)?, address: number(address)? };
        match place {
            RadioPlace { pan: 0xffff, .. } => Err("network ffff means all networks".into()),
            RadioPlace { address: 0, .. } => Err("address 0 is the gateway's".into()),
            RadioPlace { address: 0xfffe | 0xffff, .. } => Err("addresses fffe and ffff are nobody's".into()),
            place => Ok(Self(place)),
        }
    }
}

#[cfg(test)]
mod tests {
    use quiver_ainq::{Deployment, MasterSecret, OperatorSecretKey, Ristretto255, Role, TokenGrant};
    use quiver_service::armour::{self, ArmourKind};
    use rand::rngs::OsRng;

    use super::*;

    #[test]
    fn line_is_what_a_board_reads_and_tokens_of_others_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = |file: &str| directory.path().join(file);
        let made = |file: &str| {
            let master = MasterSecret::<Ristretto255>::generate(&mut OsRng).public();
            let deployment = Deployment::new(Name::new("alps").unwrap(), master);
            DeploymentFile::new(&deployment, Vec::new()).write_new(&path(file)).unwrap();
            deployment
        };
        let (deployment, _) = (made("ours.toml"), made("other.toml"));
        let groups = vec![Name::new("alpha").unwrap()];
        let name = Name::new("board-1").unwrap();
        let grant = TokenGrant { name, role: Role::Edge, groups, not_after: u64::MAX, expiry: u64::MAX };
        let operator = OperatorSecretKey::generate(&mut OsRng);
        let token = operator.issue(&deployment, grant, &mut OsRng).unwrap();
        armour::write_new(&path("token"), ArmourKind::Token, &token.encode()).unwrap();
        let args = |deployment: &str| ProvisionArgs {
            deployment: path(deployment),
            token: path("token"),
            group: None,
            radio: Some("5155:7".parse().unwrap()),
        };
        let line = line(&args("ours.toml")).unwrap();
        let block = hex::decode(line.strip_prefix("provision ").unwrap()).unwrap();
        let read = Provisioning::<Ristretto255>::decode(&block).unwrap();
        assert_eq!((read.deployment, read.kgcs), (deployment, vec![1]));
        assert_eq!(read.group, Some(Name::new("alpha").unwrap()));
        assert_eq!(read.radio, Some(RadioPlace { pan: 0x5155, address: 7 }));
        assert!(read.time.abs_diff(clock::unix_now()) < 60);
        assert_eq!(
            (read.kem.to_string(), read.token.unwrap().encode()),
            ("ml-kem-768".into(), token.encode())
        );
        // The board is told the setting of the deployment file.
        for setting in ["none", "ml-kem-1024"] {
            let kem = setting.parse().unwrap();
            let file = DeploymentFile { kem, ..DeploymentFile::read(&path("ours.toml")).unwrap() };
            file.write_new(&path(setting)).unwrap();
            let line = super::line(&args(setting)).unwrap();
            let block = hex::decode(line.strip_prefix("provision ").unwrap()).unwrap();
            let read = Provisioning::<Ristretto255>::decode(&block).unwrap();
            assert_eq!((read.kem, read.radio.is_some()), (kem, true));
        }
        let refused = super::line(&args("other.toml")).unwrap_err().to_string();
        assert!(refused.contains("another deployment"), "{refused}");
    }

    #[test]
    fn radio_places_are_read_strictly() {
        assert_eq!("beef:7".parse(), Ok(RadioArgument(RadioPlace { pan: 0xbeef, address: 7 })));
        for wrong in
            ["", "beef", "beef:", ":7", "beef:+7", "beef:00007", "ffff:1", "1:0", "1:ffff", "1:fffe", "g:1"]
        {
            assert!(wrong.parse::<RadioArgument>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn group_must_be_in_the_token() {
        let name = |text| Name::new(text).unwrap();
        let both = [name("alpha"), name("bravo")];
        assert_eq!(group(None, &both[..1]).unwrap(), Some(name("alpha")));
        assert_eq!(group(Some(&both[1]), &both).unwrap(), Some(name("bravo")));
        assert!(group(None, &both).is_err());
        assert!(group(Some(&name("charlie")), &both).is_err());
    }
}
