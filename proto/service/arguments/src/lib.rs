//! Reads the command lines of all programs: help of two lengths, and values of any sign. Writes words of command lines
//! that programs advise.
//!
//! `-h` is one screen that teaches: the first sentence about each option, the first examples. `--help` is the whole. A program
//! writes one text for both; options that few need are hidden in the short one (`hide_short_help`).

mod ranges;
mod repetitions;

use std::error::Error as _;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::{env, process};

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgMatches, Command, Error, Parser};

/// Lines of a screen, which the short help of a command does not exceed.
pub const SCREEN: usize = 40;
/// Examples of the short help.
const EXAMPLES: usize = 6;
/// Beginning of the paragraph of examples.
const HEADING: &str = "Examples:";
/// Names of values that are lengths of time.
const TIMES: [&str; 2] = ["TIME", "DURATION"];

/// Reads the command line of this process. A fault in it ends the process with exit code 2.
#[must_use]
pub fn parse<C: Parser>() -> C {
    let command = complete(C::command());
    let name = command.get_name().to_owned();
    C::from_arg_matches(&matches(command)).unwrap_or_else(|error| end(&name, &error))
}

/// Reads the command line of this process as this command describes it, for programs that then make something of it
/// themselves. Ends the process as [`end`] does.
#[must_use]
pub fn matches(mut command: Command) -> ArgMatches {
    let words: Vec<OsString> = env::args_os().collect();
    let read = command.try_get_matches_from_mut(&words);
    let read = read.and_then(|matches| repetitions::refuse(&mut command, &matches).map(|()| matches));
    read.unwrap_or_else(|error| {
        let range = ranges::of_refused(&command, &words, &error);
        answer(command.get_name(), &error, range.as_deref())
    })
}

/// Ends the process with the answer to its command line: help and version, or the fault in it with exit code 2. Help that
/// cannot be printed is a failure (1), as is every other result that cannot; a reader that went away (`| head`) is none.
pub fn end(program: &str, error: &Error) -> ! {
    answer(program, error, None)
}

/// Ends the process as [`end`] does. `range` is that of the number that was refused, if its own error does not say it.
fn answer(program: &str, answer: &Error, range: Option<&str>) -> ! {
    let printed = match in_words(answer, range) {
        Some(text) => io::stderr().write_all(text.as_bytes()),
        None => answer.print().and_then(|()| io::stdout().flush()),
    };
    let code = match printed {
        Err(cause) if !answer.use_stderr() && cause.kind() != io::ErrorKind::BrokenPipe => {
            // Nothing can be done if even standard error is closed.
            let _ = writeln!(io::stderr(), "{program}: cannot print the result: {cause}");
            1
        }
        _ => answer.exit_code(),
    };
    process::exit(code)
}

/// Text of an error about a number, in plain words in place of the library's; `None` for every other answer.
fn in_words(answer: &Error, range: Option<&str>) -> Option<String> {
    let source = answer.source()?;
    let is_negative = match answer.get(ContextKind::InvalidValue) {
        Some(ContextValue::String(value)) => {
            value.strip_prefix('-').is_some_and(|rest| rest.parse::<u64>().is_ok())
        }
        _ => false,
    };
    let plain = match source.downcast_ref::<ParseIntError>() {
        Some(error) => match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "the number is too large",
            _ if is_negative => "the number is negative",
            _ => "this is not a whole number",
        },
        None => source.downcast_ref::<ParseFloatError>().map(|_| "this is not a number")?,
    };
    let plain = range.map_or_else(|| plain.to_owned(), |range| format!("{plain}; give one in {range}"));
    Some(answer.render().to_string().replace(&source.to_string(), &plain))
}

/// Writes a word, such as a path, for a POSIX shell: as it is if the shell leaves it alone, in quotes otherwise. Control
/// characters and bytes that are no text are escaped (`$'…'`), so that the word also does nothing to a terminal.
///
/// For every command line that a program prints to be typed.
#[must_use]
pub fn quoted(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref();
    match word.to_str() {
        Some(text) if !text.is_empty() && text.chars().all(is_plain) => text.into(),
        Some(text) if !text.chars().any(char::is_control) => format!("'{}'", text.replace('\'', r"'\''")),
        _ => escaped(word.as_encoded_bytes()),
    }
}

/// Returns true if no shell gives this character a meaning inside a word.
fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-_./:,=@%+".contains(character)
}

/// `$'…'` of POSIX.1-2024: every byte that is no text, or a control character, by its number.
fn escaped(bytes: &[u8]) -> String {
    let mut word = String::from("$'");
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\'' | '\\' => word.extend(['\\', character]),
                _ if character.is_control() => {
                    let mut bytes = [0; 4];
                    escape(&mut word, character.encode_utf8(&mut bytes).as_bytes());
                }
                _ => word.push(character),
            }
        }
        escape(&mut word, chunk.invalid());
    }
    word.push('\'');
    word
}

/// Three octal digits for each byte: digits that follow are no part of them.
fn escape(word: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // A string takes everything.
        let _ = write!(word, "\\{byte:03o}");
    }
}

/// Completes what a program says of its command line, subcommands included.
#[must_use]
pub fn complete(command: Command) -> Command {
    let command = with_short_texts(command);
    command.mut_args(|arg| with_short_help(of_any_sign(arg))).mut_subcommands(complete)
}

/// A negative number or length of time is a value, to be refused as that, and no option that is unknown.
fn of_any_sign(arg: Arg) -> Arg {
    match arg.get_value_names() {
        Some([name]) if TIMES.contains(&name.as_str()) => arg.allow_hyphen_values(true),
        _ if arg.is_positional() || !arg.get_action().takes_values() => arg,
        _ => arg.allow_negative_numbers(true),
    }
}

/// Shortens what stands above and below the options in the short help.
fn with_short_texts(mut command: Command) -> Command {
    if command.get_long_about().is_none()
        && let Some(about) = command.get_about().map(ToString::to_string)
        && let Some(first) = first_sentence(&about)
    {
        command = command.about(first).long_about(about);
    }
    let after = command.get_after_help().map(ToString::to_string);
    match after.filter(|_| command.get_after_long_help().is_none()) {
        Some(after) => command.after_help(first_examples(&after)).after_long_help(after),
        None => command,
    }
}

/// Shortens the text of an option in the short help.
fn with_short_help(arg: Arg) -> Arg {
    if arg.get_long_help().is_some() {
        return arg;
    }
    let Some(help) = arg.get_help().map(ToString::to_string) else { return arg };
    match first_sentence(&help) {
        Some(first) => arg.help(first).long_help(help),
        None => arg,
    }
}

/// The first sentence of a text, and the default that the text ends with; `None` if that is all.
fn first_sentence(text: &str) -> Option<String> {
    let begins = |rest: &str| rest.starts_with(|c: char| c.is_uppercase() || "`-".contains(c));
    let (end, _) = text.match_indices(". ").find(|(end, dot)| begins(&text[end + dot.len()..]))?;
    let default = text.rfind("[default: ").filter(|at| *at > end && text.ends_with(']'));
    let default = default.map_or_else(String::new, |at| format!(" {}", &text[at..]));
    Some(format!("{}{default}", &text[..end]))
}

/// The first examples of a text, without what else it says.
fn first_examples(text: &str) -> String {
    let lines = text.lines().skip_while(|line| *line != HEADING);
    lines.take_while(|line| !line.is_empty()).take(1 + EXAMPLES).collect::<Vec<_>>().join("\n")
}

/// Texts of `-h` of a program and of its subcommands, on a terminal of 100 columns, each after its command: for tests that
/// none is longer than a screen.
#[must_use]
pub fn short_helps(command: &Command) -> Vec<(String, String)> {
    let mut command = command.clone().term_width(100);
    command.build();
    let mut helps = Vec::new();
    collect(&mut command, &mut helps);
    helps
}

fn collect(command: &mut Command, helps: &mut Vec<(String, String)>) {
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned();
    helps.push((name, command.render_help().to_string()));
    command.get_subcommands_mut().for_each(|command| collect(command, helps));
}

#[cfg(test)]
mod tests;
