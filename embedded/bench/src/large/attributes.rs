//! Attribute-based encryption: the four algorithms of each scheme for one to thirty attributes.
//!
//! Parameters have no tables, which pay only from the second use on and take more memory than a board has.
//! Encryption is of a set of all attributes; keys and decryption are of a conjunction of all of them, or of
//! one of ten random trees ([`forest`](super::forest)). For FABEO22 with the policy in the ciphertext it is
//! the other way round.

use alloc::format;
use core::ops::ControlFlow;

use quiver_abe::{FabeoCp, FabeoKp, Gpsw06, Scheme, Universe};
use quiver_policy::{AccessTree, AttributeSet};
use quiver_yct14::InsecureYct14;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use super::forest;
use crate::BenchTarget;
use crate::arguments::{Arguments, Bounds};
use crate::error::{BenchError, Result};
use crate::runner::{Runner, Subject};

/// Usage, as it is printed.
pub(super) const USAGE: &str = "\
  abe <iterations> <scheme> [operation|all] [attributes] [tree]
    schemes gpsw06 fabeo-kp fabeo-cp and yct14, which is broken; setup encrypt keygen decrypt;
    1 to 30 attributes; tree 0 is their conjunction, 1 to 10 random
";

/// Whence all keys and trees come.
const SEED: u64 = 1;

const ATTRIBUTES: Bounds = Bounds { what: "attributes", least: 1, most: 30 };
/// 0 is the conjunction.
const TREES: Bounds = Bounds { what: "tree", least: 0, most: 10 };

/// The four algorithms, in the order in which all of them run.
pub(super) const OPERATIONS: [&str; 4] = ["setup", "encrypt", "keygen", "decrypt"];

// A pairing takes 60 KiB, because a vector grows in it and is copied; two pairs of a product as much again,
// and further ones what their points take.
const GPSW_HEAP: [(usize, usize); 4] =
    [(61_440, 400), (62 * 1024, 600), (62 * 1024, 600), (100 * 1024, 1700)];
const YCT_HEAP: [(usize, usize); 4] = [(1024, 400), (2048, 1000), (2048, 800), (4096, 2560)];
const FABEO_KP_HEAP: [(usize, usize); 4] =
    [(61_440, 0), (62 * 1024, 300), (62 * 1024, 300), (120 * 1024, 1300)];
const FABEO_CP_HEAP: [(usize, usize); 4] =
    [(61_440, 0), (62 * 1024, 300), (62 * 1024, 300), (176 * 1024, 1300)];

/// A scheme as it is measured.
trait SchemeBench: Scheme {
    const NAME: &'static str;
    /// More heap than an algorithm takes, and what was made before it: in any case, and with each attribute.
    /// In the order of the algorithms.
    const HEAP: [(usize, usize); 4];

    fn universe(attributes: Universe) -> Universe;
    fn terms(tree: AccessTree, set: AttributeSet) -> (Self::KeyTerms, Self::CiphertextTerms);
}

/// A scheme over a list of attributes, with the policy in the key.
macro_rules! listed_with_the_policy_in_the_key {
    ($scheme:ty, $name:literal, $heap:expr) => {
        impl SchemeBench for $scheme {
            const NAME: &'static str = $name;
            const HEAP: [(usize, usize); 4] = $heap;

            fn universe(attributes: Universe) -> Universe {
                attributes
            }

            fn terms(tree: AccessTree, set: AttributeSet) -> (AccessTree, AttributeSet) {
                (tree, set)
            }
        }
    };
}

listed_with_the_policy_in_the_key!(Gpsw06, "gpsw06", GPSW_HEAP);
listed_with_the_policy_in_the_key!(InsecureYct14, "yct14", YCT_HEAP);

impl SchemeBench for FabeoKp {
    const NAME: &'static str = "fabeo-kp";
    const HEAP: [(usize, usize); 4] = FABEO_KP_HEAP;

    fn universe(_: Universe) -> Universe {
        Universe::Open
    }

    fn terms(tree: AccessTree, set: AttributeSet) -> (AccessTree, AttributeSet) {
        (tree, set)
    }
}

impl SchemeBench for FabeoCp {
    const NAME: &'static str = "fabeo-cp";
    const HEAP: [(usize, usize); 4] = FABEO_CP_HEAP;

    fn universe(_: Universe) -> Universe {
        Universe::Open
    }

    fn terms(tree: AccessTree, set: AttributeSet) -> (AttributeSet, AccessTree) {
        (set, tree)
    }
}

/// Parameters of a benchmark of a scheme.
struct SchemeBenchOptions<'a> {
    /// All if none.
    operation: Option<&'a str>,
    attributes: usize,
    tree: u32,
}

impl<H: BenchTarget> Runner<'_, '_, H> {
    /// Yields between two long steps that come before the first iteration.
    async fn pause(&mut self) {
        self.ended |= self.host.pause().await == ControlFlow::Break(());
    }
}

// The schemes refuse nothing as long as the numbers are within their bounds.

impl From<quiver_abe::AbeError> for BenchError {
    fn from(_: quiver_abe::AbeError) -> Self {
        Self::Failed("the scheme")
    }
}

impl From<quiver_policy::Fault> for BenchError {
    fn from(_: quiver_policy::Fault) -> Self {
        Self::Failed("the attributes")
    }
}

impl From<quiver_policy::PolicyError> for BenchError {
    fn from(_: quiver_policy::PolicyError) -> Self {
        Self::Failed("the policy")
    }
}

/// `abe <iterations> <scheme> [operation|all] [attributes] [tree]`.
pub(super) async fn abe<H: BenchTarget>(
    runner: &mut Runner<'_, '_, H>,
    mut words: Arguments<'_>,
) -> Result<()> {
    let scheme = words.word().ok_or(BenchError::Usage("which scheme?"))?;
    let operation = words.word().filter(|operation| *operation != "all");
    if operation.is_some_and(|operation| !OPERATIONS.contains(&operation)) {
        return Err(BenchError::Usage("no such operation"));
    }
    let attributes = words.number_or(ATTRIBUTES.most, ATTRIBUTES)? as usize;
    let tree = words.number_or(0, TREES)?;
    words.end()?;
    let request = SchemeBenchOptions { operation, attributes, tree };
    match scheme {
        Gpsw06::NAME => scheme_of::<Gpsw06, H>(runner, &request).await,
        FabeoKp::NAME => scheme_of::<FabeoKp, H>(runner, &request).await,
        FabeoCp::NAME => scheme_of::<FabeoCp, H>(runner, &request).await,
        InsecureYct14::NAME => scheme_of::<InsecureYct14, H>(runner, &request).await,
        _ => Err(BenchError::Usage("no such scheme")),
    }
}

async fn scheme_of<S: SchemeBench, H: BenchTarget>(
    runner: &mut Runner<'_, '_, H>,
    request: &SchemeBenchOptions<'_>,
) -> Result<()> {
    for (operation, (least, each)) in OPERATIONS.into_iter().zip(S::HEAP) {
        if request.operation.is_none_or(|only| only == operation) {
            runner.needs(least + each * request.attributes)?;
            one::<S, H>(runner, operation, request).await?;
        }
    }
    Ok(())
}

async fn one<S: SchemeBench, H: BenchTarget>(
    runner: &mut Runner<'_, '_, H>,
    operation: &str,
    request: &SchemeBenchOptions<'_>,
) -> Result<()> {
    let &SchemeBenchOptions { attributes, tree, .. } = request;
    let benchmark = format!("abe {} {operation}", S::NAME);
    let parameters = match tree {
        0 => format!("{attributes} attributes, conjunction"),
        number => format!("{attributes} attributes, tree {number}"),
    };
    let subject = Subject { benchmark: &benchmark, parameters: &parameters };
    let mut rng = ChaCha20Rng::seed_from_u64(SEED);
    let universe = S::universe(forest::listed(attributes)?);
    if operation == "setup" {
        return runner.try_repeat(subject, "setup", || S::setup(&universe, &mut rng)).await;
    }
    let policy = match tree {
        0 => forest::conjunction(attributes)?,
        number => forest::tree(SEED, u64::from(number) - 1, attributes)?,
    };
    let (of_key, of_ciphertext) = S::terms(policy, forest::attributes(attributes)?);
    let (parameters, master) = S::setup(&universe, &mut rng)?;
    drop(universe);
    runner.pause().await;
    match operation {
        "encrypt" => {
            let encrypt = || S::encapsulate(&parameters, &of_ciphertext, &mut rng);
            runner.try_repeat(subject, "encryption", encrypt).await
        }
        "keygen" => {
            let keygen = || S::derive(&parameters, &master, &of_key, &mut rng);
            runner.try_repeat(subject, "key generation", keygen).await
        }
        _ => {
            let (ciphertext, secret) = S::encapsulate(&parameters, &of_ciphertext, &mut rng)?;
            runner.pause().await;
            let key = S::derive(&parameters, &master, &of_key, &mut rng)?;
            runner.pause().await;
            let iteration = |probe: &mut crate::runner::Probe<'_, H>| {
                let (opened, sample) = probe.time(|| S::decapsulate(&parameters, &key, &ciphertext));
                if opened? == secret {
                    Ok(sample)
                } else {
                    Err(BenchError::Failed("another secret came out"))
                }
            };
            runner.measure(subject, iteration).await
        }
    }
}
