//! A line in, its benchmark's output out.

use core::fmt::Write;

use crate::arguments::{Arguments, ITERATIONS};
use crate::error::{BenchError, Result};
use crate::runner::Runner;
use crate::{About, BenchTarget, ainq, datagrams, kem, large, symmetric};

/// Usage, as it is printed, but for large benchmarks: those have their own.
const USAGE: &str = "\
usage: bench <benchmark> <iterations> […]
  aes-ecb <iterations> [blocks]        AES-128, blocks of 16 bytes one by one
  aes-cbc <iterations> [blocks]        the same, chained
  sha <iterations> [bytes]             SHA-256
  aead <iterations> [bytes]            ChaCha20-Poly1305
  ainq <iterations> [operation]        an edge's keys and what an epoch costs it:
    secret keygen partial-key sign verify header-flat header-tree first-key-flat first-key-tree
    rekey-flat rekey-tree evict-flat evict-tree, and these four with -unsigned
  datagram <iterations> [bytes]        the group's datagrams: sealed, opened, signed, announced
  kem <iterations> [set]               a pair and a decapsulation of ml-kem-768 or ml-kem-1024
";

/// Runs the benchmark that `line` names, with or without `bench` as its first word, and writes its figures,
/// the error, or for an unknown line the usage.
///
/// # Errors
/// The error that was written; [`BenchError::Output`] if it could not be.
pub async fn run<H: BenchTarget>(
    line: &str,
    about: &About<'_>,
    host: &mut H,
    out: &mut dyn Write,
) -> Result<()> {
    let done = start(line, about, host, out).await;
    match &done {
        Ok(()) | Err(BenchError::Output) => {}
        Err(error) => {
            writeln!(out, "error: {error}")?;
            if matches!(error, BenchError::Usage(_) | BenchError::OutOfBounds { .. }) {
                usage(out)?;
            }
        }
    }
    done
}

async fn start<H: BenchTarget>(
    line: &str,
    about: &About<'_>,
    host: &mut H,
    out: &mut dyn Write,
) -> Result<()> {
    let mut words = Arguments::of(line);
    let Some(benchmark) = words.word() else {
        return Err(BenchError::Usage("which benchmark?"));
    };
    if matches!(benchmark, "help" | "--help") {
        return usage(out);
    }
    let known = KNOWN.contains(&benchmark);
    if !known {
        return Err(BenchError::Usage("no such benchmark"));
    }
    let iterations = words.number(ITERATIONS)?;
    let mut runner = Runner { about, host, out, iterations, ended: false };
    let runner = &mut runner;
    match benchmark {
        "aes-ecb" => symmetric::ecb(runner, words).await,
        "aes-cbc" => symmetric::cbc(runner, words).await,
        "sha" => symmetric::sha(runner, words).await,
        "aead" => symmetric::aead(runner, words).await,
        "ainq" => ainq::ainq(runner, words).await,
        "datagram" => datagrams::datagram(runner, words).await,
        "kem" => kem::kem(runner, words).await,
        _ => large::run(benchmark, runner, words).await,
    }
}

/// All benchmarks, whether this image has them or not.
const KNOWN: [&str; 11] =
    ["aes-ecb", "aes-cbc", "rsa", "sha", "aead", "ainq", "datagram", "kem", "group", "pairing", "abe"];

fn usage(out: &mut dyn Write) -> Result<()> {
    out.write_str(USAGE)?;
    for usage in large::USAGE {
        out.write_str(usage)?;
    }
    Ok(())
}
