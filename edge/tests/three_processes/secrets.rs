//! Looking for secrets in what was logged, in every form in which bytes get printed.

use std::collections::HashMap;
use std::path::PathBuf;

/// A secret and what it is.
pub(crate) type Secret = (String, Vec<u8>);

const WINDOW: usize = 8;

/// The ways in which bytes end up in a log: as they are, as hex, as a list of numbers, as Base64.
fn spellings(secret: &[u8]) -> Vec<Vec<u8>> {
    let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let list: Vec<_> = secret.iter().map(u8::to_string).collect();
    let mut all = vec![
        secret.to_vec(),
        hex.to_uppercase().into_bytes(),
        hex.into_bytes(),
        list.join(", ").into_bytes(),
    ];
    // Wherever in a longer text the secret starts, one of the three alignments holds.
    all.extend((0..3).map(|skipped| base64(&secret[skipped..])));
    all
}

/// Base64 of all full groups of three bytes.
fn base64(bytes: &[u8]) -> Vec<u8> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let groups = bytes.chunks_exact(3).map(|group| u32::from_be_bytes([0, group[0], group[1], group[2]]));
    groups.flat_map(|group| [18, 12, 6, 0].map(|shift| ALPHABET[(group >> shift) as usize & 63])).collect()
}

/// Secrets found, and the logs with them.
pub(crate) fn find(secrets: &[Secret], logs: &[(PathBuf, Vec<u8>)]) -> Vec<String> {
    let mut needles: HashMap<[u8; WINDOW], Vec<(usize, Vec<u8>)>> = HashMap::new();
    for (number, (_, secret)) in secrets.iter().enumerate() {
        for spelling in spellings(secret) {
            let head = spelling[..WINDOW].try_into().expect("long enough");
            needles.entry(head).or_default().push((number, spelling));
        }
    }
    let mut first = [false; 1 << 16];
    for head in needles.keys() {
        first[usize::from(u16::from_be_bytes([head[0], head[1]]))] = true;
    }
    let mut found = Vec::new();
    for (path, log) in logs {
        for (at, head) in log.windows(WINDOW).enumerate() {
            if !first[usize::from(u16::from_be_bytes([head[0], head[1]]))] {
                continue;
            }
            let candidates = needles.get(head).map(Vec::as_slice).unwrap_or_default();
            let hits = candidates.iter().filter(|(_, spelling)| log[at..].starts_with(spelling));
            found.extend(hits.map(|(number, _)| format!("{} in {}", secrets[*number].0, path.display())));
        }
    }
    found
}

#[test]
fn every_spelling_of_a_secret_is_found() {
    let secret: Vec<u8> = (100..132).collect();
    for (shift, spelling) in spellings(&secret).into_iter().enumerate() {
        let log = [&b"x".repeat(shift), &spelling[..], b" and more"].concat();
        let found = find(&[("it".into(), secret.clone())], &[("log".into(), log)]);
        assert_eq!(found.len(), 1, "spelling {shift}: {found:?}");
    }
    let cut = secret[..31].to_vec();
    assert!(find(&[("it".into(), secret)], &[("log".into(), cut)]).is_empty());
}
