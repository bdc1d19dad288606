//! Keys of relays: the seed that a relay has its transport identity from, read or made.

use std::path::Path;

use quiver_net::{NodeKey, PeerId};
use quiver_service::drone::Result;
use quiver_service::{Error, private_file, terminal};
use rand::RngCore;
use rand::rngs::OsRng;
use serde::Serialize;
use zeroize::Zeroizing;

use crate::arguments::RelayKeysArgs;

const SEED_LEN: usize = 32;
/// The most that is read of a file given as a seed, to say what it is instead.
const LIMIT: u64 = 1024 * 1024;

type Seed = Zeroizing<[u8; SEED_LEN]>;

/// A relay and its public identity, as it is printed.
#[derive(Serialize)]
struct RelayIdentity<'a> {
    name: &'a str,
    identity: String,
}

/// Makes the keys that are not there (`edge relay-keys`), and says whose identities they are.
pub(crate) fn make_keys(args: &RelayKeysArgs) -> Result<()> {
    private_file::create_directory(&args.out)?;
    let mut relays = Vec::with_capacity(args.names.len());
    for name in &args.names {
        let seed = read_or_make(&args.out.join(format!("{name}.seed")))?;
        let identity = NodeKey::from_seed(*seed)?.peer_id().to_string();
        relays.push(RelayIdentity { name: name.as_str(), identity });
    }
    if let Some(path) = &args.publish {
        let lines: String = relays.iter().map(|relay| format!("{}\n", relay.identity)).collect();
        private_file::publish(path, lines.as_bytes(), is_list)?;
    }
    if args.json {
        return Ok(terminal::json(&relays)?);
    }
    for RelayIdentity { name, identity } in &relays {
        terminal::line(&format!("{name} {identity}"))?;
    }
    Ok(())
}

/// Returns true if a file is a list of relays' identities, as it is published.
fn is_list(bytes: &[u8]) -> bool {
    let is_identity = |line: &str| line.parse::<PeerId>().is_ok();
    std::str::from_utf8(bytes).is_ok_and(|text| text.lines().all(is_identity))
}

/// The seed in a file.
pub(super) fn read(path: &Path) -> Result<Seed> {
    let mut seed = Zeroizing::new([0; SEED_LEN]);
    private_file::read_decoded(path, LIMIT, |bytes| {
        let found = private_file::secret_kind(bytes).filter(|_| bytes.len() != SEED_LEN);
        let found = found.map_or_else(String::new, |found| format!("this is {found}, "));
        let wrong = || Error::Garbled {
            path: path.into(),
            what: format!("{found}not a relay's seed, which has {SEED_LEN} bytes"),
        };
        seed.copy_from_slice(Some(bytes).filter(|bytes| bytes.len() == SEED_LEN).ok_or_else(wrong)?);
        Ok(())
    })?;
    Ok(seed)
}

/// The seed in a file, which is made if there is none, so that it is the same at every start.
pub(super) fn read_or_make(path: &Path) -> Result<Seed> {
    if path.exists() {
        return read(path);
    }
    let mut seed = Zeroizing::new([0; SEED_LEN]);
    OsRng.fill_bytes(&mut *seed);
    private_file::write_new(path, &*seed)?;
    Ok(seed)
}
