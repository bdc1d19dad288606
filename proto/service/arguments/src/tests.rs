//! Help of two lengths, quoted words, numbers with their ranges, values given twice.

use clap::{Args, Subcommand};

use super::*;

/// Does things. It does them well.
#[derive(Debug, Parser)]
#[command(name = "program", after_help = AFTER)]
struct Program {
    #[command(subcommand)]
    _command: Sub,
}

const AFTER: &str = "\
About the examples.

Examples:
  program do 1
  program do 2
  program do 3
  program do 4
  program do 5
  program do 6
  program do 7
  program do 8

Exit codes:
  0 done";

#[derive(Debug, Subcommand)]
enum Sub {
    /// Do it
    Do(Do),
}

#[derive(Debug, Args)]
struct Do {
    /// Time that it may take, such as 10.5 s. Beyond, it ends. Twice is not enough [default: 1m]
    #[arg(long, value_name = "TIME")]
    wait: Option<String>,
    /// Time to rest
    #[arg(long, value_name = "DURATION")]
    rest: Option<String>,
    /// How often
    ///
    /// Not too often.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=5))]
    count: Option<u16>,
    /// For those who know. They are few
    #[arg(long, hide_short_help = true)]
    rare: bool,
}

fn help(words: &[&str]) -> String {
    let program = complete(<Program as clap::CommandFactory>::command()).term_width(100);
    program.try_get_matches_from(words).expect_err("help").to_string()
}

#[test]
fn short_help_has_first_sentences_and_first_examples() {
    let short = help(&["program", "-h"]);
    for part in ["Does things\n", "Examples:", "program do 6", "see more with '--help'"] {
        assert!(short.contains(part), "{part}: {short}");
    }
    for part in ["well", "About the examples", "program do 7", "Exit codes"] {
        assert!(!short.contains(part), "{part}: {short}");
    }
    let short = help(&["program", "do", "-h"]);
    assert!(short.contains("Time that it may take, such as 10.5 s [default: 1m]"), "{short}");
    assert!(
        !short.contains("Beyond") && !short.contains("too often") && !short.contains("--rare"),
        "{short}"
    );
}

#[test]
fn long_help_is_the_whole() {
    let long = help(&["program", "--help"]);
    for part in ["It does them well", "About the examples", "program do 8", "Exit codes"] {
        assert!(long.contains(part), "{part}: {long}");
    }
    let long = help(&["program", "do", "--help"]);
    for part in ["Beyond, it ends. Twice is not enough", "Not too often.", "--rare", "They are few"] {
        assert!(long.contains(part), "{part}: {long}");
    }
}

#[test]
fn negative_values_are_values() {
    for words in [&["--wait", "-5m"][..], &["--rest", "-5m"]] {
        let program = complete(<Program as clap::CommandFactory>::command());
        program.try_get_matches_from([&["program", "do"], words].concat()).expect("a value");
    }
    let told = help(&["program", "do", "--count", "-5"]);
    assert!(told.contains("-5 is not in 1..=5"), "{told}");
}

#[test]
fn words_are_quoted_for_a_shell_where_it_needs_that() {
    use std::os::unix::ffi::OsStrExt as _;

    for (word, wanted) in [
        (&b"demo/a-1"[..], "demo/a-1"),
        (b"udpin:127.0.0.1:14550", "udpin:127.0.0.1:14550"),
        (b"my demo", "'my demo'"),
        (b"it's", r"'it'\''s'"),
        (b"$HOME", "'$HOME'"),
        (b"~", "'~'"),
        ("für".as_bytes(), "'für'"),
        (b"", "''"),
        (b"a\nb", r"$'a\012b'"),
        (b"\x1b[2J's", r"$'\033[2J\'s'"),
        (b"\xff1", r"$'\3771'"),
    ] {
        let quoted = quoted(OsStr::from_bytes(word));
        assert_eq!(quoted, wanted);
        let printed = process::Command::new("bash").args(["-c", &format!("printf %s {quoted}")]).output();
        assert_eq!(printed.expect("a shell").stdout, word, "{quoted}");
    }
}

#[test]
fn numbers_are_refused_in_plain_words() {
    let command = || {
        let float = Arg::new("share").long("share").value_parser(clap::value_parser!(f64));
        let seed = Arg::new("seed").long("seed").value_parser(clap::value_parser!(u64));
        let seed = seed.allow_hyphen_values(true);
        complete(<Program as clap::CommandFactory>::command())
            .mut_subcommand("do", |sub| sub.args([float, seed]))
    };
    for (flag, value, wanted) in [
        ("--count", "1e3", "invalid value '1e3' for '--count <N>': this is not a whole number\n"),
        ("--count", "", "invalid value '' for '--count <N>': this is not a whole number\n"),
        ("--count", "99999999999999999999", "the number is too large\n"),
        ("--seed", "-1", "invalid value '-1' for '--seed <seed>': the number is negative\n"),
        ("--seed", "-x", "this is not a whole number\n"),
        ("--share", "2%", "invalid value '2%' for '--share <share>': this is not a number\n"),
    ] {
        let refused = command().try_get_matches_from(["program", "do", flag, value]).expect_err("refused");
        let told = in_words(&refused, None).expect("about a number");
        assert!(told.contains(wanted), "{told}");
        assert!(!told.contains("invalid digit"), "{told}");
    }
    let other = command().try_get_matches_from(["program", "do", "--count", "7"]).expect_err("refused");
    assert_eq!(in_words(&other, None), None, "it says what it takes");
}

#[test]
fn number_that_cannot_be_read_is_refused_with_its_range() {
    let number = |name: &'static str, parser: clap::builder::ValueParser| {
        Arg::new(name).long(name).value_parser(parser).allow_negative_numbers(true)
    };
    let command = || {
        Command::new("program").subcommand(Command::new("do").args([
            number("narrow", clap::value_parser!(u16).range(1..=5).into()),
            number("byte", clap::value_parser!(u8).into()),
            number("word", clap::value_parser!(u32).range(1..).into()),
            number("seed", clap::value_parser!(u64).into()),
            number("long", clap::value_parser!(u64).range(1..=7).into()),
            number("share", clap::value_parser!(f64).into()),
        ]))
    };
    let huge = "99999999999999999999";
    for (flag, value, wanted) in [
        ("--narrow", huge, "the number is too large; give one in 1..=5\n"),
        ("--narrow", "x", "this is not a whole number; give one in 1..=5\n"),
        ("--narrow", "", "this is not a whole number; give one in 1..=5\n"),
        ("--byte", "1e9", "this is not a whole number; give one in 0..=255\n"),
        ("--word", huge, "the number is too large; give one in 1..=4294967295\n"),
        ("--seed", huge, "the number is too large; give one in 0..=18446744073709551615\n"),
        ("--seed", "-1", "the number is negative; give one in 0..=18446744073709551615\n"),
        ("--long", "-1", "the number is negative; give one in 1..=7\n"),
        ("--share", "x", "this is not a number\n"),
    ] {
        let words: Vec<OsString> = ["program", "do", flag, value].map(OsString::from).into();
        let mut command = command();
        let refused = command.try_get_matches_from_mut(&words).expect_err("refused");
        let range = ranges::of_refused(&command, &words, &refused);
        let told = in_words(&refused, range.as_deref()).expect("about a number");
        assert!(told.contains(wanted), "{flag} {value}: {told}");
    }
    // clap says the range itself of a number that it can read.
    let mut command = command();
    for (flag, value) in [("--narrow", "6"), ("--byte", "-1"), ("--word", "0"), ("--long", "8")] {
        let told = command.try_get_matches_from_mut(["program", "do", flag, value]).expect_err("refused");
        assert!(told.to_string().contains(" is not in "), "{told}");
    }
}

#[test]
fn value_that_is_given_twice_is_refused() {
    let list = |name: &'static str| Arg::new(name).action(clap::ArgAction::Append);
    let mut command = Command::new("program").arg(list("peer").long("peer").global(true)).subcommand(
        Command::new("do").args([
            list("size").short('n').value_delimiter(','),
            list("word").num_args(0..),
            list("set").long("set").value_name("NAME=ID"),
            Arg::new("one").long("one"),
        ]),
    );
    command = command.subcommand(
        Command::new("run").arg(list("word").num_args(0..).trailing_var_arg(true).allow_hyphen_values(true)),
    );
    let mut read = |line: &str| {
        let words = ["program"].into_iter().chain(line.split(' '));
        let matches = command.try_get_matches_from_mut(words).expect("read");
        repetitions::refuse(&mut command, &matches).map_err(|error| error.to_string())
    };
    for line in [
        "--peer a --peer b do",
        "do -n 1,2 -n 3",
        "do a b --one a",
        "do --set a=1 --set a=1",
        "run a a --peer b",
    ] {
        assert_eq!(read(line), Ok(()), "{line}");
    }
    for (line, wanted) in [
        ("--peer a --peer b --peer a do", "the value a is given twice for '--peer <peer>'"),
        ("do --peer a --peer a", "the value a is given twice for '--peer <peer>'"),
        ("do -n 1,2,1", "the value 1 is given twice for '-n <size>'"),
        ("do -n 1 -n 1", "the value 1 is given twice for '-n <size>'"),
        ("do a b a", "the value a is given twice for '[word]...'"),
    ] {
        let told = read(line).expect_err(line);
        assert!(told.contains(wanted) && told.contains("Usage: program"), "{line}: {told}");
    }
}

#[test]
fn short_helps_are_of_all_commands() {
    let helps = short_helps(&complete(<Program as clap::CommandFactory>::command()));
    let names: Vec<&str> = helps.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["program", "program do"]);
    assert!(helps.iter().all(|(name, help)| help.contains(&format!("Usage: {name}"))), "{helps:?}");
}
