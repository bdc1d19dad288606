//! Quiver's schemes.

use std::error::Error;

use quiver_abe::{FabeoCp, FabeoKp, Gpsw06, Scheme, Universe};
use quiver_policy::{AccessTree, Attribute, AttributeSet, Schema};
use quiver_yct14::InsecureYct14;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::{AbeContender, Contenders};

/// The conjunction as a policy and its attributes as a set.
struct QuiverTerms {
    tree: AccessTree,
    set: AttributeSet,
    listed: Universe,
}

pub(crate) fn contenders(names: &[String]) -> Result<Contenders, Box<dyn Error>> {
    let attributes = names.iter().map(|name| Attribute::plain(name)).collect::<Result<Vec<_>, _>>()?;
    let schema = Schema::new();
    let terms = QuiverTerms {
        tree: AccessTree::parse(&names.join(" and "), &schema)?,
        set: AttributeSet::parse(&names.join(", "), &schema)?,
        listed: Universe::closed(attributes)?,
    };
    let mut all = Vec::new();
    for prepared in [false, true] {
        all.push(contender::<FabeoKp>(&terms, &Universe::Open, &terms.tree, &terms.set, prepared)?);
        all.push(contender::<FabeoCp>(&terms, &Universe::Open, &terms.set, &terms.tree, prepared)?);
        all.push(contender::<Gpsw06>(&terms, &terms.listed, &terms.tree, &terms.set, prepared)?);
    }
    all.push(contender::<InsecureYct14>(&terms, &terms.listed, &terms.tree, &terms.set, false)?);
    Ok(all)
}

fn contender<S: Scheme>(
    terms: &QuiverTerms,
    universe: &Universe,
    of_key: &S::KeyTerms,
    of_ciphertext: &S::CiphertextTerms,
    prepared: bool,
) -> Result<AbeContender, Box<dyn Error>>
where
    S::Parameters: 'static,
    S::MasterKey: 'static,
{
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let (mut parameters, master) = S::setup(universe, &mut rng)?;
    if prepared {
        S::prepare(&mut parameters, &terms.listed);
    }
    let key = S::derive(&parameters, &master, of_key, &mut rng)?;
    let (ciphertext, secret) = S::encapsulate(&parameters, of_ciphertext, &mut rng)?;

    let (of_key, of_ciphertext) = (of_key.clone(), of_ciphertext.clone());
    let (for_keys, for_ciphertexts) = (parameters.clone(), parameters.clone());
    let mut random = ChaCha20Rng::seed_from_u64(2);
    Ok(AbeContender {
        name: format!("quiver-{}{}", S::ID, if prepared { "-prepared" } else { "" }),
        generate: Box::new(move || S::derive(&for_keys, &master, &of_key, &mut random).is_ok()),
        encrypt: Box::new(move || S::encapsulate(&for_ciphertexts, &of_ciphertext, &mut rng).is_ok()),
        decrypt: Box::new(move || {
            S::decapsulate(&parameters, &key, &ciphertext).is_ok_and(|opened| opened == secret)
        }),
    })
}
