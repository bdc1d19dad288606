//! Computes secrets of many points on one core.

use alloc::vec::Vec;

use super::AgreedSecret;
use crate::Error;

/// Applies `secrets` to runs of points one after the other, and joins the results in order.
pub(super) fn in_chunks<P: Sync>(
    points: &[P],
    chunk_len: usize,
    secrets: impl Fn(&[P]) -> Vec<Result<AgreedSecret, Error>> + Sync + Send,
) -> Vec<Result<AgreedSecret, Error>> {
    points.chunks(chunk_len).flat_map(secrets).collect()
}
