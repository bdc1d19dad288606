//! Measures one scheme with growing numbers of attributes.

use quiver_abe::{PublicEncoding, SecretEncoding};
use quiver_policy::AccessTree;
use quiver_report::Observer;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use super::measured_scheme::MeasuredScheme;
use super::operation::SchemeAlgorithm;
use super::plan::AbePlan;
use super::random_trees::{RandomTrees, attributes, conjunction, listed};
use crate::measure::{Effort, Timing, repeat};
use crate::{LabError, Result};

/// Measurements of a scheme.
pub(super) struct AttributeGrowth {
    /// Name of the scheme for people.
    pub(super) name: &'static str,
    /// Rows by attributes, ascending.
    pub(super) rows: Vec<GrowthRow>,
}

/// Measurements with so many attributes.
pub(super) struct GrowthRow {
    pub(super) attributes: usize,
    setup: Timing,
    issued: Issued,
    /// Time with tables made beforehand.
    prepared: Option<Issued>,
    /// Time over the random trees.
    decrypt: Timing,
    /// A conjunction of all attributes: no leaf can be left out.
    pub(super) decrypt_all: Timing,
    /// Number of leaves that decryption uses, averaged over the random trees.
    pub(super) leaves_used: f64,
    pub(super) sizes: Sizes,
}

/// Operations of an authority and a sender.
#[derive(Clone, Copy)]
struct Issued {
    encrypt: Timing,
    keygen: Timing,
}

/// Bytes of canonical encodings, with a conjunction of all attributes as the policy.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) parameters: usize,
    pub(super) key: usize,
    pub(super) ciphertext: usize,
}

impl AttributeGrowth {
    pub(super) fn row(&self, attributes: usize) -> Option<&GrowthRow> {
        self.rows.iter().find(|row| row.attributes == attributes)
    }

    /// The medians, by attributes.
    pub(super) fn points(&self, of: impl Fn(&GrowthRow) -> Option<f64>) -> Vec<(f64, f64)> {
        #[expect(clippy::cast_precision_loss, reason = "numbers of attributes are small")]
        let point = |row: &GrowthRow| Some((row.attributes as f64, of(row)?));
        self.rows.iter().filter_map(point).collect()
    }
}

impl GrowthRow {
    pub(super) const fn time(&self, operation: SchemeAlgorithm) -> Timing {
        match operation {
            SchemeAlgorithm::Setup => self.setup,
            SchemeAlgorithm::Encrypt => self.issued.encrypt,
            SchemeAlgorithm::KeyGen => self.issued.keygen,
            SchemeAlgorithm::Decrypt => self.decrypt,
        }
    }

    /// Time with tables made beforehand, where they help.
    pub(super) fn prepared(&self, operation: SchemeAlgorithm) -> Option<Timing> {
        match operation {
            SchemeAlgorithm::Encrypt => self.prepared.map(|issued| issued.encrypt),
            SchemeAlgorithm::KeyGen => self.prepared.map(|issued| issued.keygen),
            SchemeAlgorithm::Setup | SchemeAlgorithm::Decrypt => None,
        }
    }
}

pub(super) fn measure<S: MeasuredScheme>(
    plan: &AbePlan,
    trees_by_size: &RandomTrees,
    observer: &mut dyn Observer,
) -> Result<AttributeGrowth> {
    observer.begin(S::NAME, plan.attributes.len());
    let mut rows = Vec::new();
    for &attributes in &plan.attributes {
        rows.push(row::<S>(plan, trees_by_size, attributes)?);
        observer.advance(1);
    }
    Ok(AttributeGrowth { name: S::NAME, rows })
}

/// An authority, and the keys and ciphertexts that it is asked for.
struct SchemeRun<'a, S: MeasuredScheme> {
    plan: &'a AbePlan,
    parameters: S::Parameters,
    master: S::MasterKey,
    /// Terms of a key and a ciphertext, by random tree.
    grove: Vec<(S::KeyTerms, S::CiphertextTerms)>,
    rng: ChaCha20Rng,
}

fn row<S: MeasuredScheme>(plan: &AbePlan, trees_by_size: &RandomTrees, count: usize) -> Result<GrowthRow> {
    let (set, list, whole) = (attributes(count)?, listed(count)?, conjunction(count)?);
    let universe = S::universe(&list);
    let mut rng = ChaCha20Rng::seed_from_u64(plan.seed);
    let setup = repeat(plan.effort, || S::setup(&universe, &mut rng).is_ok());
    let (parameters, master) = S::setup(&universe, &mut rng)?;
    let grove = trees_by_size.trees(count).map(|tree| S::terms(tree, &set)).collect();
    let mut world = SchemeRun::<S> { plan, parameters, master, grove, rng };
    let issued = world.issue();
    let decrypt = world.decrypt_all_trees()?;
    let whole = S::terms(&whole, &set);
    let (decrypt_all, sizes) = (world.decrypt(&whole, plan.effort)?, world.sizes(&whole)?);
    let prepared = S::HAS_TABLES.then(|| {
        S::prepare(&mut world.parameters, &list);
        world.issue()
    });
    let used = trees_by_size.trees(count).map(|tree| leaves_used(tree, count)).collect::<Result<Vec<_>>>()?;
    Ok(GrowthRow {
        attributes: count,
        setup,
        issued,
        prepared,
        decrypt,
        decrypt_all,
        leaves_used: mean(&used),
        sizes,
    })
}

impl<S: MeasuredScheme> SchemeRun<'_, S> {
    /// Key generation and encryption: whichever takes the policy, as the mean over all trees; the other has
    /// nothing that varies.
    fn issue(&mut self) -> Issued {
        let Self { plan, parameters, master, grove, rng } = self;
        let varied = |varies: bool| {
            if varies { (grove.len(), plan.effort_per_tree) } else { (1, plan.effort) }
        };
        let (trees, effort) = varied(!S::POLICY_IN_KEY);
        let encrypt: Vec<Timing> = grove
            .iter()
            .take(trees)
            .map(|(_, terms)| repeat(effort, || S::encapsulate(parameters, terms, rng).is_ok()))
            .collect();
        let (trees, effort) = varied(S::POLICY_IN_KEY);
        let keygen: Vec<Timing> = grove
            .iter()
            .take(trees)
            .map(|(terms, _)| repeat(effort, || S::derive(parameters, master, terms, rng).is_ok()))
            .collect();
        Issued { encrypt: mean_timing(&encrypt), keygen: mean_timing(&keygen) }
    }

    fn decrypt_all_trees(&mut self) -> Result<Timing> {
        let grove = self.grove.clone();
        let effort = self.plan.effort_per_tree;
        let timings = grove.iter().map(|terms| self.decrypt(terms, effort)).collect::<Result<Vec<_>>>()?;
        Ok(mean_timing(&timings))
    }

    fn decrypt(
        &mut self,
        (of_key, of_ciphertext): &(S::KeyTerms, S::CiphertextTerms),
        effort: Effort,
    ) -> Result<Timing> {
        let key = S::derive(&self.parameters, &self.master, of_key, &mut self.rng)?;
        let (ciphertext, secret) = S::encapsulate(&self.parameters, of_ciphertext, &mut self.rng)?;
        if S::decapsulate(&self.parameters, &key, &ciphertext)? != secret {
            return Err(LabError::WrongKey(S::NAME));
        }
        Ok(repeat(effort, || S::decapsulate(&self.parameters, &key, &ciphertext).is_ok()))
    }

    fn sizes(&mut self, (of_key, of_ciphertext): &(S::KeyTerms, S::CiphertextTerms)) -> Result<Sizes> {
        let key = S::derive(&self.parameters, &self.master, of_key, &mut self.rng)?;
        let (ciphertext, _) = S::encapsulate(&self.parameters, of_ciphertext, &mut self.rng)?;
        Ok(Sizes {
            parameters: self.parameters.encode().len(),
            key: key.encode().len(),
            ciphertext: ciphertext.encode().len(),
        })
    }
}

/// Number of leaves of the cheapest satisfying subset, with all attributes available.
#[expect(clippy::cast_precision_loss, reason = "a tree has few leaves")]
fn leaves_used(tree: &AccessTree, count: usize) -> Result<f64> {
    let selection = tree.formula().select(&attributes(count)?, |_, _| 1);
    Ok(selection.map_or(0.0, |selection| selection.leaves().len() as f64))
}

/// The mean of medians, with the samples of all of them.
fn mean_timing(timings: &[Timing]) -> Timing {
    let medians: Vec<f64> = timings.iter().map(|timing| timing.median).collect();
    Timing { median: mean(&medians), samples: timings.iter().map(|timing| timing.samples).sum() }
}

#[expect(clippy::cast_precision_loss, reason = "lists here are short")]
fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_of_medians_counts_all_samples() {
        let timings = vec![Timing { median: 1.0, samples: 3 }, Timing { median: 2.0, samples: 4 }];
        assert_eq!(mean_timing(&timings), Timing { median: 1.5, samples: 7 });
        assert_eq!(mean_timing(&[]), Timing { median: 0.0, samples: 0 });
    }

    #[test]
    fn decryption_uses_as_few_leaves_as_satisfy_the_tree() {
        let schema = quiver_policy::Schema::new();
        let tree = AccessTree::parse("attribute-0 or (attribute-1 and attribute-2)", &schema).unwrap();
        assert_eq!(leaves_used(&tree, 3).unwrap(), 1.0);
        assert_eq!(leaves_used(&conjunction(5).unwrap(), 5).unwrap(), 5.0);
    }
}
