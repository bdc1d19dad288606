//! ML-KEM: what a second factor (docs/protocol.md, section 24) costs a drone.
//!
//! | operation | what is measured |
//! |---|---|
//! | `pair` | the encapsulation key out of 64 bytes |
//! | `decapsulate` | the shared secret out of a ciphertext and those 64 bytes, of which the pair is made again |
//!
//! A board encapsulates nothing: leaders do. The implementation is the one of the target: in place on boards,
//! by a crate on hosts.

use quiver_crypto::Secret;
use quiver_kem::{DecapsulationKey, KemSet, MESSAGE_LEN, SEED_LEN, encapsulate};

use crate::BenchTarget;
use crate::arguments::Arguments;
use crate::error::{BenchError, Result};
use crate::runner::{Runner, Subject};

/// Protects nothing.
const SEED: [u8; SEED_LEN] = [7; SEED_LEN];
const MESSAGE: [u8; MESSAGE_LEN] = [1; MESSAGE_LEN];

/// `kem <iterations> [set]`. The secrets of both ends must be the same before anything is measured.
pub(crate) async fn kem<H: BenchTarget>(
    runner: &mut Runner<'_, '_, H>,
    mut words: Arguments<'_>,
) -> Result<()> {
    const WRONG: BenchError = BenchError::Failed("the secrets of the two ends differ");
    let set: KemSet = words
        .word()
        .map_or(Ok(KemSet::MlKem768), str::parse)
        .map_err(|_| BenchError::Usage("no such parameter set"))?;
    words.end()?;
    runner.needs(set.key_len() + set.ciphertext_len())?;
    let pair = || DecapsulationKey::generate(set, Secret::new(SEED));
    let (secret, key) = pair();
    let (ciphertext, shared) = encapsulate(set, &key, &Secret::new(MESSAGE)).map_err(|_| WRONG)?;
    drop(key);
    if secret.decapsulate(&ciphertext).map_err(|_| WRONG)? != shared {
        return Err(WRONG);
    }
    let subject = |benchmark| Subject { benchmark, parameters: set.name() };
    runner.repeat(subject("kem pair"), pair).await?;
    runner
        .try_repeat(subject("kem decapsulate"), "a ciphertext is not taken", || {
            secret.decapsulate(&ciphertext)
        })
        .await
}
