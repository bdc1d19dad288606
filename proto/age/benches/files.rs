//! Files of 64 MiB to a condition and back, beside the cipher of their chunks alone. One core; nothing is read or
//! written but memory.
//!
//! `cargo bench -p quiver-age --bench files`

#[path = "../tests/support/kgc.rs"]
mod kgc;

use std::hint::black_box;
use std::io::{self, Read};

use chacha20poly1305::aead::{AeadInPlace, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Key, Nonce};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use quiver_age::{Format, SealedFile, encrypt};

use self::kgc::Kgc;

const LENGTH: u64 = 64 << 20;
/// Bytes of a chunk of age's payload.
const CHUNK: usize = 64 << 10;

fn files(c: &mut Criterion) {
    let kgc = Kgc::new(5);
    let (recipients, identity) = ([kgc.recipient("mission/a")], kgc.identity(&["mission/a"]));
    let mut bench = c.benchmark_group("files");
    bench.sample_size(10).throughput(Throughput::Bytes(LENGTH));
    bench.bench_function("encrypt", |b| {
        b.iter(|| encrypt(&recipients, Format::Binary, io::repeat(7).take(LENGTH), io::sink()).unwrap());
    });
    let mut sealed = Vec::new();
    encrypt(&recipients, Format::Binary, io::repeat(7).take(LENGTH), &mut sealed).unwrap();
    bench.bench_function("decrypt", |b| {
        b.iter(|| {
            let opened = SealedFile::read(&sealed[..]).and_then(|sealed| sealed.open(&identity)).unwrap();
            assert_eq!(opened.copy_to(io::sink()).unwrap(), LENGTH);
        });
    });
    let (cipher, nonce) = (ChaCha20Poly1305::new(Key::from_slice(&[1; 32])), Nonce::default());
    let mut chunk = vec![7; CHUNK];
    let tag = cipher.encrypt_in_place_detached(&nonce, b"", &mut chunk).unwrap();
    let chunks = LENGTH / CHUNK as u64;
    bench.bench_function("cipher/encrypt", |b| {
        let mut chunk = vec![7; CHUNK];
        b.iter(|| {
            (0..chunks).for_each(|_| {
                black_box(cipher.encrypt_in_place_detached(&nonce, b"", black_box(&mut chunk)).unwrap());
            });
        });
    });
    bench.bench_function("cipher/decrypt", |b| {
        let mut buffer = chunk.clone();
        b.iter(|| {
            (0..chunks).for_each(|_| {
                buffer.copy_from_slice(&chunk);
                cipher.decrypt_in_place_detached(&nonce, b"", black_box(&mut buffer), &tag).unwrap();
            });
        });
    });
}

criterion_group!(benches, files);
criterion_main!(benches);
