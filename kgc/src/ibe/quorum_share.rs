//! The master key of encryption to conditions in a quorum: its statement, signed by the quorum itself, and
//! this KGC's share.
//!
//! Every KGC proposes the statement about the shares in force as soon as it serves drones; the others sign
//! what they made themselves. Once signed, it is in the registry, and good until the next refresh, also after
//! restarts; the share is in `quorum.state` alone.

use quiver_ainq::{AuthorityStatement, KgcId, Ristretto255, SignedAuthority, StatementSignature};
use quiver_ibe::{MasterPublicKey, MasterShare, PublicShares as IbeShares};
use quiver_key_release::{Holding, ReleaseAuthority, ReleaseParameters, SCHEME};
use quiver_pairing::{G1, Group};
use quiver_quorum::PublicShares;
use quiver_quorum_node::{Ibe, ibe_name};

use crate::quorum::node::{IbeStatements, QuorumMember};

/// Form of the statement.
pub(crate) const STATEMENTS: IbeStatements = IbeStatements { scheme: SCHEME, parameters };

/// The parameters of the statement, which every KGC makes out of its own result; empty, which no member
/// signs, if these are no shares.
fn parameters(public: &PublicShares<Ibe>) -> Vec<u8> {
    converted(public).map_or_else(Vec::new, |parameters| parameters.encode())
}

/// The same shares in the terms of identity-based encryption, whose versions count from 1.
fn converted(public: &PublicShares<Ibe>) -> Option<ReleaseParameters> {
    let threshold = public.parameters().threshold();
    let master = MasterPublicKey::decode(public.master().as_bytes()).ok()?;
    let shares = public.shares().map(|(kgc, point)| Some((kgc, G1::decode(point.as_bytes()).ok()?)));
    let publics = IbeShares::new(threshold, master, shares.collect::<Option<Vec<_>>>()?).ok()?;
    Some(ReleaseParameters { version: public.version().checked_add(1)?, publics })
}

/// Version of a statement about the shares in force; `None` before there are any.
pub(crate) fn version(node: &QuorumMember) -> Option<u32> {
    node.keys()?.ibe().public().version().checked_add(1)
}

/// The body of the statement about the shares in force, for this KGC to propose.
pub(crate) fn proposal(node: &QuorumMember) -> Option<Vec<u8>> {
    let (deployment, keys) = (node.deployment()?, node.keys()?);
    let name = ibe_name(keys.ibe().share().kgc())?;
    let statement = converted(keys.ibe().public())?.statement(deployment, name).ok()?;
    Some(statement.body())
}

/// The statement that the quorum has signed, if it is about a key of encryption to conditions.
pub(crate) fn signed(
    node: &QuorumMember,
    body: &[u8],
    signature: &[u8],
) -> Option<ReleaseAuthority<Ristretto255>> {
    let statement = AuthorityStatement::<Ristretto255>::decode(body).ok()?;
    let signed = SignedAuthority::new(statement, StatementSignature::decode(signature).ok()?).ok()?;
    ReleaseAuthority::decode(node.deployment()?, &signed.encode()).ok()
}

/// Share of this KGC, with the statement about it.
pub(crate) fn holding(
    node: &QuorumMember,
    authority: ReleaseAuthority<Ristretto255>,
) -> Option<Holding<Ristretto255>> {
    let share = node.keys()?.ibe().share();
    // Little-endian there, big-endian here.
    let mut scalar = share.expose();
    scalar.reverse();
    let kgc: KgcId = share.kgc();
    Holding::new(authority, MasterShare::from_scalar_bytes(kgc, &scalar).ok()?).ok()
}
