//! Figures per strategy.

use quiver_report::{CellValue, Ink};

use crate::measure::Timing;

use super::group::Strategy;

/// The strategies that are measured.
pub(super) const STRATEGIES: [Strategy; 2] = [Strategy::Flat, Strategy::Tree];

/// A figure per strategy.
#[derive(Clone, Debug, Default)]
pub(super) struct PerStrategy<T> {
    flat: Option<T>,
    tree: Option<T>,
}

impl<T: Copy> PerStrategy<T> {
    /// Asks for every strategy's figure.
    pub(super) fn try_of<E>(mut figure: impl FnMut(Strategy) -> Result<T, E>) -> Result<Self, E> {
        let mut all = Self { flat: None, tree: None };
        for strategy in STRATEGIES {
            *all.place(strategy) = Some(figure(strategy)?);
        }
        Ok(all)
    }

    pub(super) fn of(&self, strategy: Strategy) -> Option<T> {
        match strategy {
            Strategy::Flat => self.flat,
            Strategy::Tree => self.tree,
        }
    }

    /// The same of another figure made from each.
    pub(super) fn map<U>(&self, figure: impl Fn(T) -> U) -> PerStrategy<U> {
        PerStrategy { flat: self.flat.map(&figure), tree: self.tree.map(&figure) }
    }

    fn place(&mut self, strategy: Strategy) -> &mut Option<T> {
        match strategy {
            Strategy::Flat => &mut self.flat,
            Strategy::Tree => &mut self.tree,
        }
    }
}

impl PerStrategy<Timing> {
    /// The medians in seconds.
    pub(super) fn seconds(&self) -> PerStrategy<f64> {
        self.map(|timing| timing.median)
    }
}

impl PerStrategy<f64> {
    /// Ratio of the flat strategy to the tree.
    pub(super) fn flat_over_tree(&self) -> CellValue {
        CellValue::ratio(self.flat, self.tree)
    }
}

/// Name of a strategy.
pub(super) const fn name(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Flat => "Quiver, flat",
        Strategy::Tree => "Quiver, tree",
    }
}

/// Ink of a strategy.
pub(super) const fn ink(strategy: Strategy) -> Ink {
    match strategy {
        Strategy::Flat => Ink::Flat,
        Strategy::Tree => Ink::Tree,
    }
}
