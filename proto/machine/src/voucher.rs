//! A drone's signature of its clock's time: public key ‖ signature.
//!
//! Any peer of a KGC or a leader may claim any time; only the statements of drones count. A driver asks for
//! the time, and the signed statement names both ends and the nonce of the question.

use alloc::vec::Vec;

use quiver_ainq::{Deployment, DroneKeypair, DronePublicKey, Error, Label, Name, Signature, Suite};
use quiver_crypto::canonical::{Reader, Writer};
use rand_core::CryptoRngCore;

use crate::revocations::Revocations;

/// Signs it.
pub fn vouch<S: Suite>(
    deployment: &Deployment<S>,
    keypair: &DroneKeypair<S>,
    statement: &[u8],
    rng: &mut dyn CryptoRngCore,
) -> Vec<u8> {
    // §16.1: under `clock`, with the identity.
    let signature = keypair.sign(deployment, Label::Clock, statement, rng);
    Writer::new().fixed(&keypair.public().encode()).fixed(&signature.encode()).finish()
}

/// The drone that signed it. An identity that has ended is accepted: whether it has ended is what is in
/// doubt.
///
/// # Errors
/// If it is no signature, of a revoked drone, or does not verify.
pub fn vouched<S: Suite>(
    deployment: &Deployment<S>,
    revocations: &Revocations<S>,
    statement: &[u8],
    signed: &[u8],
) -> Result<Name, Error> {
    let mut reader = Reader::new(signed);
    let public = DronePublicKey::<S>::read(&mut reader)?;
    let signature = Signature::<S>::read(&mut reader)?;
    reader.end()?;
    // §16.1: a drone that is revoked vouches for nothing.
    if revocations.names(&public) {
        return Err(Error::Revoked);
    }
    signature.verify(deployment, &public, Label::Clock, statement)?;
    Ok(public.identity.name)
}

#[cfg(test)]
mod tests {
    use quiver_ainq::{
        Identity, MasterSecret, RevocationStatement, Revoked, Ristretto255, Role, SecretValue,
    };
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    type S = Ristretto255;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    /// A drone whose identity has ended long since.
    fn drone(master: &MasterSecret<S>, deployment: &Deployment<S>, rng: &mut ChaCha20Rng) -> DroneKeypair<S> {
        let groups = alloc::vec![name("alpha")];
        let identity =
            Identity { serial: [9; 16], name: name("edge-9"), role: Role::Edge, groups, not_after: 1 };
        let secret = SecretValue::generate(rng);
        let partial = master.issue_partial_key(deployment, &identity, &secret.public(), rng);
        partial.verify(deployment, &identity, &secret).unwrap()
    }

    #[test]
    fn what_a_drone_signed_counts_for_that_statement_alone_and_until_it_is_revoked() {
        let mut rng = ChaCha20Rng::seed_from_u64(5);
        let master = MasterSecret::<S>::generate(&mut rng);
        let deployment = Deployment::new(name("test"), master.public());
        let drone = drone(&master, &deployment, &mut rng);
        let mut revocations = Revocations::new();
        let signed = vouch(&deployment, &drone, b"half past", &mut rng);
        let asked = |revocations: &_, statement: &[u8], signed: &[u8]| {
            vouched::<S>(&deployment, revocations, statement, signed)
        };
        assert_eq!(asked(&revocations, b"half past", &signed), Ok(name("edge-9")));
        assert_eq!(asked(&revocations, b"midnight", &signed), Err(Error::InvalidSignature));
        for length in 0..signed.len() {
            assert!(asked(&revocations, b"half past", &signed[..length]).is_err());
        }
        let other = drone.sign(&deployment, Label::Command, b"half past", &mut rng);
        let other = Writer::new().fixed(&drone.public().encode()).fixed(&other.encode()).finish();
        assert_eq!(asked(&revocations, b"half past", &other), Err(Error::InvalidSignature));
        let revoked = alloc::vec![Revoked::from(&drone.public().identity)];
        let list = RevocationStatement { number: 1, issued: 1, next_update: 2, revoked };
        let list = master.sign_revocations(&deployment, list, &mut rng).unwrap();
        revocations.offer(&deployment, &list.encode()).unwrap();
        assert_eq!(asked(&revocations, b"half past", &signed), Err(Error::Revoked));
    }
}
