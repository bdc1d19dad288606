//! The schemes of the crate `rabe`.

use std::error::Error;

use rabe::error::RabeError;
use rabe::schemes::{ac17, lsw, yct14};
use rabe::utils::policy::pest::PolicyLanguage::HumanPolicy;

use crate::{AbeContender, Contenders};

const MESSAGE: &[u8; 32] = b"a message of thirty-two bytes ..";

/// The conjunction as rabe reads it, and its attributes.
struct RabeTerms {
    policy: String,
    /// The same for `ac17`, whose gates have two children: `a and (b and (c and d))`.
    in_pairs: String,
    names: &'static [&'static str],
}

impl RabeTerms {
    /// rabe takes attributes by reference, and every contender keeps them for good: they live as long as the
    /// process.
    fn new(names: &[String]) -> Self {
        let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
        let leaked: Vec<&'static str> = names.iter().map(|name| &*name.clone().leak()).collect();
        let mut rest = quoted.iter().rev();
        let last = rest.next().cloned().unwrap_or_default();
        let nest = |inner: String, name: &String| {
            if inner.contains(" and ") {
                format!("{name} and ({inner})")
            } else {
                format!("{name} and {inner}")
            }
        };
        Self { policy: quoted.join(" and "), in_pairs: rest.fold(last, nest), names: leaked.leak() }
    }
}

/// rabe's error is no [`Error`].
#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn said(error: RabeError) -> String {
    error.to_string()
}

pub(crate) fn contenders(names: &[String]) -> Result<Contenders, Box<dyn Error>> {
    let terms = RabeTerms::new(names);
    Ok(vec![broken(&terms)?, lewko_sahai_waters(&terms)?, fame_kp(&terms)?, fame_cp(&terms)?])
}

fn broken(terms: &RabeTerms) -> Result<AbeContender, Box<dyn Error>> {
    let (names, policy) = (terms.names.to_vec(), terms.policy.clone());
    let (public, master) = yct14::setup(names.clone());
    let key = yct14::keygen(&master, &policy, HumanPolicy).map_err(said)?;
    let ciphertext = yct14::encrypt(&public, &names, MESSAGE).map_err(said)?;
    Ok(AbeContender {
        name: "rabe-yct14".into(),
        generate: Box::new(move || yct14::keygen(&master, &policy, HumanPolicy).is_ok()),
        encrypt: Box::new(move || yct14::encrypt(&public, &names, MESSAGE).is_ok()),
        decrypt: Box::new(move || yct14::decrypt(&key, &ciphertext).is_ok_and(|opened| opened == MESSAGE)),
    })
}

fn lewko_sahai_waters(terms: &RabeTerms) -> Result<AbeContender, Box<dyn Error>> {
    let (names, policy) = (terms.names, terms.policy.clone());
    let (public, master) = lsw::setup();
    let key = lsw::keygen(&public, &master, &policy, HumanPolicy).map_err(said)?;
    let ciphertext = lsw::encrypt(&public, names, MESSAGE).map_err(said)?;
    let known = public.clone();
    Ok(AbeContender {
        name: "rabe-lsw".into(),
        generate: Box::new(move || lsw::keygen(&known, &master, &policy, HumanPolicy).is_ok()),
        encrypt: Box::new(move || lsw::encrypt(&public, names, MESSAGE).is_ok()),
        decrypt: Box::new(move || lsw::decrypt(&key, &ciphertext).is_ok_and(|opened| opened == MESSAGE)),
    })
}

fn fame_kp(terms: &RabeTerms) -> Result<AbeContender, Box<dyn Error>> {
    let (names, policy) = (terms.names, terms.in_pairs.clone());
    let (public, master) = ac17::setup();
    let key = ac17::kp_keygen(&master, &policy, HumanPolicy).map_err(said)?;
    let ciphertext = ac17::kp_encrypt(&public, names, MESSAGE).map_err(said)?;
    Ok(AbeContender {
        name: "rabe-ac17-kp".into(),
        generate: Box::new(move || ac17::kp_keygen(&master, &policy, HumanPolicy).is_ok()),
        encrypt: Box::new(move || ac17::kp_encrypt(&public, names, MESSAGE).is_ok()),
        decrypt: Box::new(move || ac17::kp_decrypt(&key, &ciphertext).is_ok_and(|opened| opened == MESSAGE)),
    })
}

fn fame_cp(terms: &RabeTerms) -> Result<AbeContender, Box<dyn Error>> {
    let (names, policy) = (terms.names, terms.in_pairs.clone());
    let (public, master) = ac17::setup();
    let key = ac17::cp_keygen(&master, names).map_err(said)?;
    let ciphertext = ac17::cp_encrypt(&public, &policy, MESSAGE, HumanPolicy).map_err(said)?;
    Ok(AbeContender {
        name: "rabe-ac17-cp".into(),
        generate: Box::new(move || ac17::cp_keygen(&master, names).is_ok()),
        encrypt: Box::new(move || ac17::cp_encrypt(&public, &policy, MESSAGE, HumanPolicy).is_ok()),
        decrypt: Box::new(move || ac17::cp_decrypt(&key, &ciphertext).is_ok_and(|opened| opened == MESSAGE)),
    })
}
