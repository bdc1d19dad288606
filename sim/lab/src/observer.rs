//! Who watches an experiment.

/// Is told how far an experiment has come.
pub trait Observer {
    /// A task of so many steps begins; the one before has ended.
    fn begin(&mut self, task: &str, steps: usize);

    /// So many more steps are done.
    fn advance(&mut self, steps: usize);
}

/// Nobody watches.
impl Observer for () {
    fn begin(&mut self, _: &str, _: usize) {}

    fn advance(&mut self, _: usize) {}
}
