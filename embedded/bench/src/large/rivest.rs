//! RSA-1024 with PKCS #1 v1.5, for comparison with shells that have it.
//!
//! RSA-1024 is too short and this padding is attacked; nothing in Quiver uses either.

use alloc::format;
use alloc::vec;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use rsa::{BigUint, Pkcs1v15Encrypt, RsaPrivateKey};

use crate::BenchTarget;
use crate::arguments::{Arguments, Bounds};
use crate::error::{BenchError, Result};
use crate::runner::{Runner, Subject};

/// Usage, as it is printed.
pub(super) const USAGE: &str = "  rsa <iterations> [block size]        RSA-1024, PKCS #1 v1.5\n";

/// Bytes that a message has at most: those of the modulus without the padding's.
const BYTES: Bounds = Bounds { what: "block size", least: 1, most: 128 - 11 };

/// More than key, message and intermediate results take.
const HEAP: usize = 8 * 1024;

const EXPONENT: u32 = 65_537;

/// Two primes of 512 bits, drawn for this file. They protect nothing.
const PRIMES: [&[u8]; 2] = [
    b"c77d4b55e13e8346c3f8c2abab8dc10bedc7c2d433202f0ef55318a4c050f31e5ab2b5d4add282c69083d74e80e641c5ccb8\
      460c4ec702d54d8a8cdd6a63252d",
    b"d6e8c202302e8951be5528bc312cb1e93b7829bc145dfd120fea97d73bd3ada5c3fb8adf9f7afa4e9e77bb59793fd2f123fe\
      429c0a7e9532934a641d535e033f",
];

/// `rsa <iterations> [block size]`: encryption and decryption of one block, apart.
pub(super) async fn rsa<H: BenchTarget>(
    runner: &mut Runner<'_, '_, H>,
    mut words: Arguments<'_>,
) -> Result<()> {
    let length = words.number_or(100, BYTES)? as usize;
    words.end()?;
    runner.needs(HEAP)?;
    let key = key().ok_or(BenchError::Failed("the key"))?;
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let message = vec![1; length];
    let public = key.to_public_key();
    let parameters = format!("RSA-1024, PKCS #1 v1.5, {length} bytes");
    let subject = Subject { benchmark: "rsa encrypt", parameters: &parameters };
    let encrypt = || public.encrypt(&mut rng, Pkcs1v15Encrypt, &message);
    runner.try_repeat(subject, "encryption", encrypt).await?;
    let sealed = public.encrypt(&mut rng, Pkcs1v15Encrypt, &message);
    let sealed = sealed.map_err(|_| BenchError::Failed("encryption"))?;
    let subject = Subject { benchmark: "rsa decrypt", ..subject };
    runner.try_repeat(subject, "decryption", || key.decrypt(Pkcs1v15Encrypt, &sealed)).await
}

fn key() -> Option<RsaPrivateKey> {
    let [p, q] = PRIMES.map(|prime| BigUint::parse_bytes(prime, 16));
    RsaPrivateKey::from_p_q(p?, q?, BigUint::from(EXPONENT)).ok()
}
