//! Scenario files: what is read, what is refused and where, and that every shipped one runs to its end.

mod actions;
mod refusals;
mod shipped;

use quiver_world::scenario::{ReadOptions, Scenario, ScenarioError};

/// A small scenario with these lines at its end.
fn with(lines: &str) -> String {
    format!(
        "title = \"Test\"\nabout = \"\"\nduration = \"2m\"\nsettle = \"30s\"\n[fleet]\nmembers = 10\nleaders = 2\n{lines}"
    )
}

fn read(text: &str) -> Result<Scenario, ScenarioError> {
    Scenario::parse("dir/test.toml", text, ReadOptions::default())
}
