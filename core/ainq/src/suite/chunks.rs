//! Computes secrets of many points on all cores.

use alloc::vec::Vec;

use rayon::prelude::*;

use super::AgreedSecret;
use crate::Error;

/// Applies `secrets` to runs of points on all cores, and joins the results in order.
pub(super) fn in_chunks<P: Sync>(
    points: &[P],
    chunk_len: usize,
    secrets: impl Fn(&[P]) -> Vec<Result<AgreedSecret, Error>> + Sync + Send,
) -> Vec<Result<AgreedSecret, Error>> {
    points.par_chunks(chunk_len).flat_map_iter(secrets).collect()
}
