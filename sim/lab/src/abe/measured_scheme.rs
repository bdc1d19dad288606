//! The schemes as the experiments use them.

use quiver_abe::{FabeoCp, FabeoKp, Gpsw06, Scheme, Universe};
use quiver_policy::{AccessTree, AttributeSet};
use quiver_yct14::InsecureYct14;

/// A scheme that is measured with a policy and a set of attributes.
pub(super) trait MeasuredScheme: Scheme {
    /// Name of the scheme for people.
    const NAME: &'static str;
    /// True if keys have the policy, and not ciphertexts.
    const POLICY_IN_KEY: bool;
    /// True if [`Scheme::prepare`] does anything.
    const HAS_TABLES: bool;

    /// The universe to found an authority over, for so many attributes.
    fn universe(attributes: &Universe) -> Universe;

    /// Terms of a key and of a ciphertext.
    fn terms(tree: &AccessTree, set: &AttributeSet) -> (Self::KeyTerms, Self::CiphertextTerms);
}

impl MeasuredScheme for Gpsw06 {
    const NAME: &'static str = "GPSW06";
    const POLICY_IN_KEY: bool = true;
    const HAS_TABLES: bool = true;

    fn universe(attributes: &Universe) -> Universe {
        attributes.clone()
    }

    fn terms(tree: &AccessTree, set: &AttributeSet) -> (AccessTree, AttributeSet) {
        (tree.clone(), set.clone())
    }
}

impl MeasuredScheme for InsecureYct14 {
    const NAME: &'static str = "YCT14 (broken)";
    const POLICY_IN_KEY: bool = true;
    const HAS_TABLES: bool = false;

    fn universe(attributes: &Universe) -> Universe {
        attributes.clone()
    }

    fn terms(tree: &AccessTree, set: &AttributeSet) -> (AccessTree, AttributeSet) {
        (tree.clone(), set.clone())
    }
}

impl MeasuredScheme for FabeoKp {
    const NAME: &'static str = "FABEO22 KP";
    const POLICY_IN_KEY: bool = true;
    const HAS_TABLES: bool = true;

    fn universe(_: &Universe) -> Universe {
        Universe::Open
    }

    fn terms(tree: &AccessTree, set: &AttributeSet) -> (AccessTree, AttributeSet) {
        (tree.clone(), set.clone())
    }
}

impl MeasuredScheme for FabeoCp {
    const NAME: &'static str = "FABEO22 CP";
    const POLICY_IN_KEY: bool = false;
    const HAS_TABLES: bool = true;

    fn universe(_: &Universe) -> Universe {
        Universe::Open
    }

    fn terms(tree: &AccessTree, set: &AttributeSet) -> (AttributeSet, AccessTree) {
        (set.clone(), tree.clone())
    }
}
