//! Parameters, master keys, keys and ciphertexts of attribute-based schemes: every scheme is fed with the
//! same bytes. A value that decodes has one encoding, and nothing but the honest key and the honest
//! ciphertext give the honest secret.

use std::sync::LazyLock;

use quiver_abe::{FabeoCp, FabeoKp, Gpsw06, PublicEncoding, Scheme, SecretEncoding, Universe};
use quiver_crypto::Secret;
use quiver_policy::{AccessTree, AttributeSet, IntegerType, Schema};
use quiver_yct14::InsecureYct14;

use crate::scene::rng;

/// Every part of a key or ciphertext for these is needed to open.
const POLICY: &str = "alpha and altitude >= 2";
const SET: &str = "alpha, altitude = 2";

/// Keys and ciphertext of an honest authority, holder and sender.
struct HonestScheme<S: Scheme> {
    parameters: S::Parameters,
    master: S::MasterKey,
    key: S::Key,
    ciphertext: S::Ciphertext,
    secret: Secret<32>,
}

/// A scheme with something honest to compare with.
trait Staged: Scheme {
    fn honest() -> &'static HonestScheme<Self>;
}

fn schema() -> Schema {
    let altitude = IntegerType::unsigned(2).expect("two bits");
    let schema = Schema::new().with_integer("altitude", altitude).expect("a name");
    schema.with_plain(["alpha"]).expect("a name")
}

fn tree() -> AccessTree {
    AccessTree::parse(POLICY, &schema()).expect("a policy")
}

fn set() -> AttributeSet {
    AttributeSet::parse(SET, &schema()).expect("attributes")
}

fn closed() -> Universe {
    Universe::closed(schema().universe().expect("a closed list")).expect("a universe")
}

fn made<S: Scheme>(
    universe: &Universe,
    of_key: &S::KeyTerms,
    of_ciphertext: &S::CiphertextTerms,
) -> HonestScheme<S> {
    let mut rng = rng(40);
    let (parameters, master) = S::setup(universe, &mut rng).expect("a universe of its kind");
    let key = S::derive(&parameters, &master, of_key, &mut rng).expect("known attributes");
    let (ciphertext, secret) =
        S::encapsulate(&parameters, of_ciphertext, &mut rng).expect("known attributes");
    HonestScheme { parameters, master, key, ciphertext, secret }
}

macro_rules! staged {
    ($($scheme:ty: $universe:expr, $of_key:expr, $of_ciphertext:expr;)*) => {
        $(impl Staged for $scheme {
            fn honest() -> &'static HonestScheme<Self> {
                static HONEST: LazyLock<HonestScheme<$scheme>> =
                    LazyLock::new(|| made(&$universe, &$of_key, &$of_ciphertext));
                &HONEST
            }
        })*
    };
}

staged! {
    Gpsw06: closed(), tree(), set();
    FabeoKp: Universe::Open, tree(), set();
    FabeoCp: Universe::Open, set(), tree();
    InsecureYct14: closed(), tree(), set();
}

macro_rules! every_scheme {
    ($($(#[$doc:meta])* $name:ident, $seeds:ident => $body:ident, $part:ident;)*) => {
        $($(#[$doc])* pub fn $name(bytes: &[u8]) {
            $body::<Gpsw06>(bytes);
            $body::<FabeoKp>(bytes);
            $body::<FabeoCp>(bytes);
            $body::<InsecureYct14>(bytes);
        }

        /// One of every scheme.
        pub fn $seeds() -> Vec<Vec<u8>> {
            vec![
                Gpsw06::honest().$part.encode().to_vec(),
                FabeoKp::honest().$part.encode().to_vec(),
                FabeoCp::honest().$part.encode().to_vec(),
                InsecureYct14::honest().$part.encode().to_vec(),
            ]
        })*
    };
}

every_scheme! {
    /// An authority's parameters, and encapsulating under them.
    parameters, parameters_seeds => one_parameters, parameters;
    /// Master keys, and deriving with them.
    master_key, master_key_seeds => one_master_key, master;
    /// Keys, and opening an honest ciphertext with them.
    key, key_seeds => one_key, key;
    /// Ciphertexts, and opening them with an honest key.
    ciphertext, ciphertext_seeds => one_ciphertext, ciphertext;
}

fn one_parameters<S: Staged>(bytes: &[u8]) {
    let Ok(parameters) = S::Parameters::decode(bytes) else { return };
    assert_eq!(parameters.encode(), bytes, "two encodings of one value");
    let honest = S::honest();
    let same = parameters.authority() == honest.parameters.authority();
    assert_eq!(same, bytes == honest.parameters.encode(), "two authorities of one name");
    let opened = S::decapsulate(&parameters, &honest.key, &honest.ciphertext);
    assert_eq!(opened.is_ok(), same);
}

fn one_master_key<S: Staged>(bytes: &[u8]) {
    let Ok(master) = S::MasterKey::decode(bytes) else { return };
    assert_eq!(master.encode()[..], *bytes, "two encodings of one value");
    let honest = S::honest();
    let same = bytes == &honest.master.encode()[..];
    let terms = quiver_abe::HasTerms::terms(&honest.key);
    let Ok(key) = S::derive(&honest.parameters, &master, terms, &mut rng(41)) else { return assert!(!same) };
    if same {
        let opened = S::decapsulate(&honest.parameters, &key, &honest.ciphertext);
        assert_eq!(opened.as_ref(), Ok(&honest.secret), "an honest master key");
    }
}

fn one_key<S: Staged>(bytes: &[u8]) {
    let Ok(key) = S::Key::decode(bytes) else { return };
    assert_eq!(key.encode()[..], *bytes, "two encodings of one value");
    let honest = S::honest();
    let opened = S::decapsulate(&honest.parameters, &key, &honest.ciphertext);
    assert_eq!(opened.as_ref() == Ok(&honest.secret), bytes == &honest.key.encode()[..], "a forged key");
}

fn one_ciphertext<S: Staged>(bytes: &[u8]) {
    let Ok(ciphertext) = S::Ciphertext::decode(bytes) else { return };
    assert_eq!(ciphertext.encode(), bytes, "two encodings of one value");
    let honest = S::honest();
    let opened = S::decapsulate(&honest.parameters, &honest.key, &ciphertext);
    assert_eq!(
        opened.as_ref() == Ok(&honest.secret),
        bytes == honest.ciphertext.encode(),
        "another ciphertext of it"
    );
}
