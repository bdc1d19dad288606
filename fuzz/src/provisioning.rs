//! Provisioning blocks of boards: typed on the console, and stored in flash.

use quiver_ainq::{Ristretto255, Role};
use quiver_crypto::Hasher;
use quiver_group::edge::{MAX_PROVISIONING_LEN, Provisioning, RadioPlace};

use crate::scene::{Staged, name};

type S = Ristretto255;

/// Bytes at the end of a block that are the beginning of a hash of all before them.
const CHECK_LEN: usize = 8;

/// A block as it is, and with its checksum corrected: without that, hardly anything would get past the check.
pub fn provisioning(bytes: &[u8]) {
    read(bytes);
    let body = &bytes[..bytes.len().saturating_sub(CHECK_LEN)];
    let hash = Hasher::new("quiver/1 provisioning").lp(body).finish();
    read(&[body, &hash[..CHECK_LEN]].concat());
}

/// A decoded block is within bounds, has one encoding, and belongs to one deployment.
fn read(bytes: &[u8]) {
    let Ok(settings) = Provisioning::<S>::decode(bytes) else { return };
    assert!(bytes.len() <= MAX_PROVISIONING_LEN && !settings.kgcs.is_empty());
    assert_eq!(*settings.encode(), *bytes);
    if let Some(token) = &settings.token {
        assert_eq!(token.token.statement.master, *settings.deployment.master());
    }
}

/// Blocks with everything, and with next to nothing.
pub fn provisioning_seeds() -> Vec<Vec<u8>> {
    let scene = S::scene();
    let full = || Provisioning::<S> {
        deployment: scene.deployment.clone(),
        kgcs: vec![1, 2, 3],
        group: Some(name("alpha")),
        time: 7_000,
        radio: Some(RadioPlace { pan: 0x5155, address: 7 }),
        kem: Default::default(),
        token: Some(scene.token("edge-0", Role::Edge)),
    };
    let bare = Provisioning { kgcs: vec![1], group: None, radio: None, token: None, ..full() };
    let by_line = Provisioning { radio: None, ..full() };
    let kem = "ml-kem-1024".parse().unwrap_or_default();
    let hybrid = Provisioning { kem, ..full() };
    [full(), bare, by_line, hybrid].iter().map(|settings| settings.encode().to_vec()).collect()
}
