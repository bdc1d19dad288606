//! A scheme with an authority, policies and sets to use it with, and the places of elements in its
//! encodings.

use quiver_abe::{
    Ciphertext, FabeoCp, FabeoKp, Gpsw06, Key, MasterKey, Parameters, PublicEncoding, Scheme, SecretEncoding,
    Terms, Universe,
};
use quiver_crypto::Secret;
use quiver_policy::{AccessTree, AttributeSet, IntegerType, Schema};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

/// Plain attributes of the authorities here.
pub(crate) const NAMES: [&str; 8] =
    ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel"];

/// Bytes before the terms: header, authority, length.
const BEFORE_TERMS: usize = 3 + 32 + 4;

pub(crate) fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

pub(crate) fn schema() -> Schema {
    let altitude = IntegerType::unsigned(4).unwrap();
    Schema::new().with_integer("altitude", altitude).unwrap().with_plain(NAMES).unwrap()
}

pub(crate) fn policy(text: &str) -> AccessTree {
    AccessTree::parse(text, &schema()).unwrap()
}

pub(crate) fn set(text: &str) -> AttributeSet {
    AttributeSet::parse(text, &schema()).unwrap()
}

/// A scheme as tests see it: which side has the policy, and what its encodings consist of.
pub(crate) trait Case: Scheme {
    /// Every attribute of [`schema`], or any.
    fn universe() -> Universe;
    /// Terms of a key if policies are `policy` and sets are `set`.
    fn of_key(policy: &AccessTree, set: &AttributeSet) -> Self::KeyTerms;
    /// Terms of a ciphertext then.
    fn of_ciphertext(policy: &AccessTree, set: &AttributeSet) -> Self::CiphertextTerms;
    /// The lengths of a key's elements, in order, in bytes.
    fn key_elements(policy: &AccessTree, set: &AttributeSet) -> Vec<usize>;
    /// The lengths of a ciphertext's.
    fn ciphertext_elements(policy: &AccessTree, set: &AttributeSet) -> Vec<usize>;
    /// The lengths of the parameters' after any list of attributes.
    fn parameter_elements() -> Vec<usize>;
}

pub(crate) fn closed() -> Universe {
    Universe::closed(schema().universe().unwrap()).unwrap()
}

/// Attributes of the universe, bits singly.
pub(crate) const UNIVERSE_LEN: usize = NAMES.len() + 2 * 4;

fn leaves(policy: &AccessTree) -> usize {
    policy.formula().leaves().len()
}

/// The terms of a scheme whose keys have the policy, and whose ciphertexts the attributes.
macro_rules! key_has_the_policy {
    () => {
        fn of_key(policy: &AccessTree, _: &AttributeSet) -> AccessTree {
            policy.clone()
        }
        fn of_ciphertext(_: &AccessTree, set: &AttributeSet) -> AttributeSet {
            set.clone()
        }
    };
}

impl Case for Gpsw06 {
    fn universe() -> Universe {
        closed()
    }
    key_has_the_policy!();
    fn key_elements(policy: &AccessTree, _: &AttributeSet) -> Vec<usize> {
        vec![96; leaves(policy)]
    }
    fn ciphertext_elements(_: &AccessTree, set: &AttributeSet) -> Vec<usize> {
        vec![48; set.len()]
    }
    fn parameter_elements() -> Vec<usize> {
        [vec![48; UNIVERSE_LEN], vec![576]].concat()
    }
}

impl Case for FabeoKp {
    fn universe() -> Universe {
        Universe::Open
    }
    key_has_the_policy!();
    fn key_elements(policy: &AccessTree, _: &AttributeSet) -> Vec<usize> {
        [vec![48; leaves(policy)], vec![96; policy.formula().uses()]].concat()
    }
    fn ciphertext_elements(_: &AccessTree, set: &AttributeSet) -> Vec<usize> {
        [vec![48; set.len()], vec![96]].concat()
    }
    fn parameter_elements() -> Vec<usize> {
        vec![576]
    }
}

impl Case for FabeoCp {
    fn universe() -> Universe {
        Universe::Open
    }
    fn of_key(_: &AccessTree, set: &AttributeSet) -> AttributeSet {
        set.clone()
    }
    fn of_ciphertext(policy: &AccessTree, _: &AttributeSet) -> AccessTree {
        policy.clone()
    }
    fn key_elements(_: &AccessTree, set: &AttributeSet) -> Vec<usize> {
        [vec![48; 1 + set.len()], vec![96]].concat()
    }
    fn ciphertext_elements(policy: &AccessTree, _: &AttributeSet) -> Vec<usize> {
        [vec![96; 1 + policy.formula().uses()], vec![48; leaves(policy)]].concat()
    }
    fn parameter_elements() -> Vec<usize> {
        vec![576]
    }
}

impl Case for quiver_yct14::InsecureYct14 {
    fn universe() -> Universe {
        closed()
    }
    key_has_the_policy!();
    fn key_elements(policy: &AccessTree, _: &AttributeSet) -> Vec<usize> {
        vec![32; leaves(policy)]
    }
    fn ciphertext_elements(_: &AccessTree, set: &AttributeSet) -> Vec<usize> {
        vec![32; set.len()]
    }
    fn parameter_elements() -> Vec<usize> {
        vec![32; UNIVERSE_LEN + 1]
    }
}

/// An authority, and a source of randomness.
pub(crate) struct World<S: Case> {
    pub(crate) parameters: S::Parameters,
    pub(crate) master: S::MasterKey,
    pub(crate) rng: ChaCha20Rng,
}

impl<S: Case> World<S> {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = rng(seed);
        let (parameters, master) = S::setup(&S::universe(), &mut rng).unwrap();
        Self { parameters, master, rng }
    }

    /// A key, whichever of the two it is for.
    pub(crate) fn key(&mut self, policy: &AccessTree, set: &AttributeSet) -> S::Key {
        S::derive(&self.parameters, &self.master, &S::of_key(policy, set), &mut self.rng).unwrap()
    }

    /// A ciphertext with its secret, whichever of the two it is for.
    pub(crate) fn sealed(&mut self, policy: &AccessTree, set: &AttributeSet) -> (S::Ciphertext, Secret<32>) {
        S::encapsulate(&self.parameters, &S::of_ciphertext(policy, set), &mut self.rng).unwrap()
    }
}

/// An encoded key or ciphertext, cut up.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) head: Vec<u8>,
    pub(crate) elements: Vec<Vec<u8>>,
}

impl Parts {
    /// Cuts the elements of these lengths off the end.
    pub(crate) fn of(bytes: &[u8], lengths: &[usize]) -> Self {
        let (head, mut rest) = bytes.split_at(bytes.len() - lengths.iter().sum::<usize>());
        let mut elements = Vec::new();
        for &length in lengths {
            let (element, after) = rest.split_at(length);
            elements.push(element.to_vec());
            rest = after;
        }
        Self { head: head.to_vec(), elements }
    }

    pub(crate) fn join(&self) -> Vec<u8> {
        [self.head.clone(), self.elements.concat()].concat()
    }

    /// The same authority and kind, for other terms and with other elements.
    pub(crate) fn forged(&self, terms: &impl Terms, elements: &[&Vec<u8>]) -> Vec<u8> {
        let terms = terms.encode();
        let mut bytes = self.head[..BEFORE_TERMS - 4].to_vec();
        bytes.extend(u32::try_from(terms.len()).unwrap().to_be_bytes());
        bytes.extend(terms);
        elements.iter().for_each(|element| bytes.extend_from_slice(element));
        bytes
    }
}

/// Bytes of a key or ciphertext with these terms and elements, as the schemes' documentation has them.
pub(crate) fn documented_len(terms: &impl Terms, elements: &[usize]) -> usize {
    BEFORE_TERMS + terms.encode().len() + elements.iter().sum::<usize>()
}

// The generic frames are the associated types; kept nameable for applications.
const _: fn(Parameters<FabeoKp>) -> <FabeoKp as Scheme>::Parameters = |same| same;
const _: fn(MasterKey<FabeoKp>) -> <FabeoKp as Scheme>::MasterKey = |same| same;
const _: fn(Key<FabeoKp>) -> <FabeoKp as Scheme>::Key = |same| same;
const _: fn(Ciphertext<FabeoKp>) -> <FabeoKp as Scheme>::Ciphertext = |same| same;

/// Decoded and encoded again.
pub(crate) fn key_of<S: Scheme>(bytes: &[u8]) -> S::Key {
    S::Key::decode(bytes).unwrap()
}

pub(crate) fn ciphertext_of<S: Scheme>(bytes: &[u8]) -> S::Ciphertext {
    S::Ciphertext::decode(bytes).unwrap()
}
