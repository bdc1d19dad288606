//! AES, SHA-256 and ChaCha20-Poly1305.

use alloc::format;
use alloc::vec;

use aes::Aes128;
use aes::cipher::{Block, BlockEncrypt, BlockEncryptMut, KeyInit, KeyIvInit};
use quiver_crypto::{Hasher, Secret, aead};

use crate::BenchTarget;
use crate::arguments::{Arguments, Bounds};
use crate::error::Result;
use crate::runner::{Runner, Subject};

/// Bytes of a block of AES.
const BLOCK: usize = 16;
/// Protects nothing.
const KEY: [u8; BLOCK] = *b"bench key of AES";
const AEAD_KEY: [u8; 32] = [7; 32];

const BLOCKS: Bounds = Bounds { what: "blocks", least: 1, most: 4096 };
const BYTES: Bounds = Bounds { what: "bytes", least: 0, most: 65_536 };

/// `aes-ecb <iterations> [blocks]`: each block by itself; the key's schedule was made beforehand.
pub(crate) async fn ecb<H: BenchTarget>(
    runner: &mut Runner<'_, '_, H>,
    mut words: Arguments<'_>,
) -> Result<()> {
    let count = words.number_or(1, BLOCKS)? as usize;
    words.end()?;
    runner.needs(count * BLOCK)?;
    let cipher = Aes128::new(&KEY.into());
    let mut blocks = vec![Block::<Aes128>::default(); count];
    let parameters = blocks_of(count);
    let subject = Subject { benchmark: "aes-ecb", parameters: &parameters };
    runner.repeat(subject, || cipher.encrypt_blocks(&mut blocks)).await
}

/// `aes-cbc <iterations> [blocks]`: one message of so many blocks after the other, chained throughout.
pub(crate) async fn cbc<H: BenchTarget>(
    runner: &mut Runner<'_, '_, H>,
    mut words: Arguments<'_>,
) -> Result<()> {
    let count = words.number_or(1, BLOCKS)? as usize;
    words.end()?;
    runner.needs(count * BLOCK)?;
    let mut cipher = cbc::Encryptor::<Aes128>::new(&KEY.into(), &[0; BLOCK].into());
    let mut blocks = vec![Block::<Aes128>::default(); count];
    let parameters = blocks_of(count);
    let subject = Subject { benchmark: "aes-cbc", parameters: &parameters };
    runner.repeat(subject, || cipher.encrypt_blocks_mut(&mut blocks)).await
}

fn blocks_of(count: usize) -> alloc::string::String {
    format!("{count} blocks of 16 bytes, key of 16 bytes")
}

/// `sha <iterations> [bytes]`: SHA-256, as every hash of the protocol is made, with its domain.
pub(crate) async fn sha<H: BenchTarget>(
    runner: &mut Runner<'_, '_, H>,
    mut words: Arguments<'_>,
) -> Result<()> {
    let length = words.number_or(256, BYTES)? as usize;
    words.end()?;
    runner.needs(length)?;
    let message = vec![1; length];
    let parameters = format!("SHA-256, {length} bytes");
    let subject = Subject { benchmark: "sha", parameters: &parameters };
    runner.repeat(subject, || Hasher::new("bench").fixed(&message).finish()).await
}

/// `aead <iterations> [bytes]`: ChaCha20-Poly1305, sealing and then opening.
pub(crate) async fn aead<H: BenchTarget>(
    runner: &mut Runner<'_, '_, H>,
    mut words: Arguments<'_>,
) -> Result<()> {
    let length = words.number_or(256, BYTES)? as usize;
    words.end()?;
    // The message, its ciphertext, and what opening it gives.
    runner.needs(3 * (length + aead::TAG_LEN))?;
    let (key, nonce) = (Secret::new(AEAD_KEY), [0; 12]);
    let message = vec![1; length];
    let parameters = format!("ChaCha20-Poly1305, {length} bytes");
    let subject = Subject { benchmark: "aead seal", parameters: &parameters };
    runner.repeat(subject, || aead::seal(&key, &nonce, b"", &message)).await?;
    let sealed = aead::seal(&key, &nonce, b"", &message);
    let subject = Subject { benchmark: "aead open", ..subject };
    runner
        .try_repeat(subject, "what was sealed does not open", || aead::open(&key, &nonce, b"", &sealed))
        .await
}
