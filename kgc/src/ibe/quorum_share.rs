//! The master key of encryption to conditions in a quorum: its statement, signed by the quorum itself, and
//! this KGC's share.
//!
//! Every KGC proposes the statement about the shares in force as soon as it serves drones; the others sign
//! what they made themselves. Once signed, it is in the registry, and good until the next refresh, also after
//! restarts; the share is in `quorum.state` alone.

use quiver_ainq::{KgcId, Ristretto255};
use quiver_ibe::{MasterPublicKey, MasterShare, PublicShares as IbeShares};
use quiver_key_release::{Holding, ReleaseAuthority, ReleaseParameters, SCHEME, ShareServer};
use quiver_pairing::{G1, Group};
use quiver_quorum::PublicShares;
use quiver_quorum_node::{Ibe, IbeStatements, ibe_name};
use quiver_service::clock;

use super::release::{ReleaseRevisions, server};
use super::setup::first_patterns;
use super::tables::{ReleaseTable, ReleaseWriter};
use crate::config::Config;
use crate::error::Result;
use crate::quorum::node::QuorumMember;
use crate::quorum::release::QuorumRelease;
use crate::store::Store;

impl QuorumRelease for ShareServer<Ristretto255> {
    const STATEMENTS: Option<IbeStatements> = Some(IbeStatements { scheme: SCHEME, parameters });

    fn open_member(config: &Config, _: &Store) -> Result<(Self, ReleaseRevisions)> {
        Ok((server(config, None), ReleaseRevisions { share: true, ..ReleaseRevisions::default() }))
    }

    fn proposal(&self, member: &QuorumMember) -> Option<Vec<u8>> {
        let held = self.issuer().holding().map(|holding| holding.authority().version());
        if held == version(member) { None } else { proposal(member) }
    }

    fn take_signed(&mut self, member: &QuorumMember, statement: &[u8]) {
        let authority = authority(member, statement);
        let current = authority.filter(|signed| Some(signed.version()) == version(member));
        if let Some(share) = current.and_then(|authority| holding(member, authority)) {
            self.issuer_mut().hold(share);
        }
    }

    fn note_signed(store: &mut Store, member: &QuorumMember, statement: &[u8]) {
        let Some(authority) = authority(member, statement) else { return };
        match tokio::task::block_in_place(|| note(store, &authority)) {
            Ok(()) => tracing::info!(version = authority.version(), "key shares are released"),
            Err(error) => tracing::error!(%error, "the statement about the master key could not be noted"),
        }
    }
}

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
fn version(node: &QuorumMember) -> Option<u32> {
    node.keys()?.ibe().public().version().checked_add(1)
}

/// The body of the statement about the shares in force, for this KGC to propose.
fn proposal(node: &QuorumMember) -> Option<Vec<u8>> {
    let (deployment, keys) = (node.deployment()?, node.keys()?);
    let name = ibe_name(keys.ibe().share().kgc())?;
    let statement = converted(keys.ibe().public())?.statement(deployment, name).ok()?;
    Some(statement.body())
}

/// The statement that the quorum has signed, if it is about a key of encryption to conditions.
fn authority(node: &QuorumMember, statement: &[u8]) -> Option<ReleaseAuthority<Ristretto255>> {
    ReleaseAuthority::decode(node.deployment()?, statement).ok()
}

/// Share of this KGC, with the statement about it.
fn holding(node: &QuorumMember, authority: ReleaseAuthority<Ristretto255>) -> Option<Holding<Ristretto255>> {
    let share = node.keys()?.ibe().share();
    // Little-endian there, big-endian here.
    let mut scalar = share.expose();
    scalar.reverse();
    let kgc: KgcId = share.kgc();
    Holding::new(authority, MasterShare::from_scalar_bytes(kgc, &scalar).ok()?).ok()
}

/// Stores the data for `kgc ibe list`, and the initial policies.
fn note(store: &mut Store, authority: &ReleaseAuthority<Ristretto255>) -> Result<()> {
    let known = store.master_key().newest()?;
    if known.as_ref().is_some_and(|known| known.version >= authority.version()) {
        return Ok(());
    }
    let mut patterns = if known.is_none() { first_patterns() } else { Vec::new() };
    // Policies that the operator set before there was a key stay.
    let said = ReleaseTable::of(store).policies()?;
    patterns.retain(|pattern| said.iter().all(|row| row.pattern != pattern.as_str()));
    // The share is in `quorum.state`.
    store.change(clock::unix_now(), |change| {
        ReleaseWriter::of(change).record_authority(authority, &patterns, || Ok(()))
    })
}
