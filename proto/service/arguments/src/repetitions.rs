//! Refusal of an option, or a list of arguments, that has one value twice: no command does anything twice, so that a value
//! was mistyped.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command, Error};

use crate::quoted;

/// Refuses a value that is given twice for one argument, in the subcommand that was given as well.
pub(crate) fn refuse(command: &mut Command, matches: &ArgMatches) -> Result<(), Error> {
    let text = command.get_arguments().find_map(|arg| repeated(arg, matches));
    if let Some(text) = text {
        return Err(command.error(ErrorKind::ValueValidation, text));
    }
    let Some((name, below)) = matches.subcommand() else { return Ok(()) };
    command.find_subcommand_mut(name).map_or(Ok(()), |command| refuse(command, below))
}

/// Text about the first value that an argument has twice. Words of another command line (`trailing_var_arg`) are its own. A
/// command itself refuses a name that is set twice (`NAME=ID`), because it does so whatever the name is set to.
fn repeated(arg: &Arg, matches: &ArgMatches) -> Option<String> {
    let is_assignment =
        arg.get_value_names().is_some_and(|names| names.iter().any(|name| name.contains('=')));
    if !matches!(arg.get_action(), ArgAction::Append) || arg.is_trailing_var_arg_set() || is_assignment {
        return None;
    }
    let mut values = matches.try_get_raw(arg.get_id().as_str()).ok()??;
    let mut seen: BTreeSet<&OsStr> = BTreeSet::new();
    let value = values.find(|value| !seen.insert(value))?;
    Some(format!("the value {} is given twice for '{arg}'", quoted(value)))
}
