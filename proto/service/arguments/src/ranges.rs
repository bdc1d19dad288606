//! Ranges of numeric options, for errors about values that are no numbers of their type. clap says a range of numbers alone
//! that it could read; an option's own parser says it when it is asked about a number that no range reaches.

use std::error::Error as _;
use std::ffi::OsString;
use std::num::ParseIntError;

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Command, Error};

/// Words before the range in clap's error.
const BEFORE: &str = " is not in ";

/// Range of the option that this error is about, as clap writes ranges: `1..=5`. `None` if the option has none.
pub(crate) fn of_refused(command: &Command, words: &[OsString], error: &Error) -> Option<String> {
    let Some(ContextValue::String(named)) = error.get(ContextKind::InvalidArg) else { return None };
    // Of other numbers (shares, percentages) each option says its own bounds.
    error.source()?.downcast_ref::<ParseIntError>()?;
    let command = words.iter().skip(1).fold(command, |command, word| {
        word.to_str().and_then(|word| command.find_subcommand(word)).unwrap_or(command)
    });
    command.get_arguments().find(|arg| arg.to_string() == *named).and_then(range)
}

/// Range of the numbers that an option takes.
fn range(arg: &Arg) -> Option<String> {
    let ask = |number: &str| {
        let asked = Arg::new("number").value_parser(arg.get_value_parser().clone());
        Command::new("range").no_binary_name(true).arg(asked).try_get_matches_from([number])
    };
    let (highest, beyond) = (u64::MAX.to_string(), i64::MAX.to_string());
    for number in [&beyond, &highest] {
        let refused = ask(number).err().and_then(|error| Some(error.source()?.to_string()));
        if let Some((_, range)) = refused.as_ref().and_then(|text| text.split_once(BEFORE)) {
            return Some(range.to_owned());
        }
    }
    ask(&highest).is_ok().then(|| format!("0..={highest}"))
}
