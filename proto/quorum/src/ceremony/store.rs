//! Encoding of ceremonies for encrypted storage: after a restart the same bytes must be sent again.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use quiver_ainq::KgcId;
use quiver_crypto::Zeroizing;
use quiver_crypto::canonical::{Reader, Writer};
use quiver_machine::{RestoreError, Snapshot};
use quiver_message::quorum::{Both, CeremonyKind, Echo, MAX_MEMBERS, SecretBytes};
use quiver_quorum::QuorumSuite;

use super::KeyCeremonies;
use super::state::{CandidateShares, CeremonyPart, CeremonySession, Settled};
use crate::keys::QuorumKeys;
use crate::rounds::CeremonyRound;

const KIND: &[u8] = b"quiver/1 quorum ceremonies";
/// Bytes that the stored rounds, or keys, may have.
const MAX_LEN: usize = 1 << 22;

type Restored<T> = Result<T, RestoreError>;

impl<S: QuorumSuite> KeyCeremonies<S> {
    pub(crate) fn encode(&self) -> Snapshot {
        let rounds = self.session.as_ref().map(|session| session.round.encode());
        let keys = self.candidate.as_ref().map(|candidate| candidate.keys.encode());
        let room =
            rounds.as_ref().map_or(0, |rounds| rounds.len()) + keys.as_ref().map_or(0, |keys| keys.len());
        // Everything else is n times less than this.
        let mut writer = Writer::with_capacity(1024 + room + MAX_MEMBERS * 512);
        writer.lp(KIND).lp(S::ID.as_bytes()).u64(self.last_attempt);
        option(&mut writer, self.part.as_ref(), |writer, part| part.write(writer));
        option(&mut writer, self.session.as_ref().zip(rounds), |writer, (session, rounds)| {
            writer.fixed(&session.id);
            attempts(writer, &session.attempts);
            digests(writer, &session.digests);
            writer.lp(&rounds);
        });
        option(&mut writer, self.candidate.as_ref().zip(keys), |writer, (candidate, keys)| {
            candidate.write(writer, &keys);
        });
        attempts(&mut writer, &self.over);
        option(&mut writer, self.settled.as_ref(), |writer, settled| {
            settled.part.write(writer);
            writer.fixed(&settled.session).fixed(&settled.digest);
        });
        Snapshot::new(writer.finish())
    }

    pub(crate) fn decode(bytes: &[u8]) -> Restored<Self> {
        let mut reader = Reader::new(bytes);
        let this = Self::read(&mut reader)?;
        reader.end().map_err(damaged)?;
        Ok(this)
    }

    fn read(reader: &mut Reader<'_>) -> Restored<Self> {
        if reader.lp(KIND.len()).map_err(damaged)? != KIND {
            return Err(RestoreError::Damaged);
        }
        if reader.lp(256).map_err(damaged)? != S::ID.as_bytes() {
            return Err(RestoreError::Foreign);
        }
        let last_attempt = reader.u64().map_err(damaged)?;
        let part = read_option(reader, CeremonyPart::read)?;
        let session = read_option(reader, CeremonySession::read)?;
        let candidate = read_option(reader, CandidateShares::read)?;
        let over = read_attempts(reader)?;
        let settled = read_option(reader, |reader| {
            let part = CeremonyPart::read(reader)?;
            let session = reader.array().map_err(damaged)?;
            Ok(Settled { part, session, digest: reader.array().map_err(damaged)? })
        })?;
        if session.is_some() && part.is_none() {
            return Err(RestoreError::Damaged);
        }
        Ok(Self { last_attempt, part, session, candidate, over, settled, ..Self::new() })
    }
}

impl CeremonyPart {
    fn write(&self, writer: &mut Writer) {
        writer.u8(match self.kind {
            CeremonyKind::Generation => 1,
            CeremonyKind::Refresh => 2,
        });
        writer.u64(self.attempt).fixed(&self.nonce);
        option(writer, self.keys, |writer, keys| {
            writer.fixed(&keys);
        });
    }

    fn read(reader: &mut Reader<'_>) -> Restored<Self> {
        let kind = match reader.u8().map_err(damaged)? {
            1 => CeremonyKind::Generation,
            2 => CeremonyKind::Refresh,
            _ => return Err(RestoreError::Damaged),
        };
        let attempt = reader.u64().map_err(damaged)?;
        let nonce = reader.array().map_err(damaged)?;
        let keys = read_option(reader, |reader| reader.array().map_err(damaged))?;
        Ok(Self { kind, attempt, nonce, keys })
    }
}

impl<S: QuorumSuite> CeremonySession<S> {
    fn read(reader: &mut Reader<'_>) -> Restored<Self> {
        let id = reader.array().map_err(damaged)?;
        let attempts = read_attempts(reader)?;
        let digests = read_digests(reader)?;
        let round =
            CeremonyRound::decode(reader.lp(MAX_LEN).map_err(damaged)?).map_err(|_| RestoreError::Damaged)?;
        Ok(Self { id, attempts, round, digests, received: BTreeMap::new() })
    }
}

impl<S: QuorumSuite> CandidateShares<S> {
    fn write(&self, writer: &mut Writer, keys: &[u8]) {
        self.part.write(writer);
        writer.fixed(&self.session).lp(keys);
        writer.fixed(&self.echo.hashes.ainq).fixed(&self.echo.hashes.ibe);
        digests(writer, &self.echo.digests);
        writer.count(self.shares.len());
        for (kgc, share) in &self.shares {
            writer.u16(*kgc).lp(share.ainq.expose()).lp(share.ibe.expose());
        }
    }

    fn read(reader: &mut Reader<'_>) -> Restored<Self> {
        let part = CeremonyPart::read(reader)?;
        let session = reader.array().map_err(damaged)?;
        let keys = reader.lp(MAX_LEN).map_err(damaged)?;
        let keys = QuorumKeys::decode(keys).map(Box::new).map_err(|_| RestoreError::Damaged)?;
        let hashes = Both { ainq: reader.array().map_err(damaged)?, ibe: reader.array().map_err(damaged)? };
        let echo = Echo { hashes, digests: read_digests(reader)? };
        let shares = (0..reader.count(MAX_MEMBERS, 10).map_err(damaged)?)
            .map(|_| {
                let kgc = reader.u16().map_err(damaged)?;
                Ok((kgc, Both { ainq: read_secret(reader)?, ibe: read_secret(reader)? }))
            })
            .collect::<Restored<_>>()?;
        let digest = keys.digest();
        let (confirmed, gone) = (BTreeSet::new(), BTreeSet::new());
        Ok(Self { part, session, keys, digest, echo, shares, confirmed, gone })
    }
}

fn attempts(writer: &mut Writer, attempts: &BTreeMap<KgcId, u64>) {
    writer.count(attempts.len());
    for (kgc, attempt) in attempts {
        writer.u16(*kgc).u64(*attempt);
    }
}

fn read_attempts(reader: &mut Reader<'_>) -> Restored<BTreeMap<KgcId, u64>> {
    let count = reader.count(MAX_MEMBERS, 10).map_err(damaged)?;
    let one = |_| Ok((reader.u16().map_err(damaged)?, reader.u64().map_err(damaged)?));
    (0..count).map(one).collect()
}

fn read_secret(reader: &mut Reader<'_>) -> Restored<SecretBytes> {
    let bytes = reader.lp(128).map_err(damaged)?;
    Ok(SecretBytes::new(Zeroizing::new(bytes.to_vec())))
}

fn digests(writer: &mut Writer, digests: &[[u8; 32]]) {
    writer.count(digests.len());
    for digest in digests {
        writer.fixed(digest);
    }
}

fn read_digests(reader: &mut Reader<'_>) -> Restored<Vec<[u8; 32]>> {
    let count = reader.count(MAX_MEMBERS, 32).map_err(damaged)?;
    (0..count).map(|_| reader.array().map_err(damaged)).collect()
}

fn option<T>(writer: &mut Writer, value: Option<T>, write: impl FnOnce(&mut Writer, T)) {
    writer.u8(u8::from(value.is_some()));
    if let Some(value) = value {
        write(writer, value);
    }
}

fn read_option<'a, T>(
    reader: &mut Reader<'a>,
    read: impl FnOnce(&mut Reader<'a>) -> Restored<T>,
) -> Restored<Option<T>> {
    match reader.u8().map_err(damaged)? {
        0 => Ok(None),
        1 => read(reader).map(Some),
        _ => Err(RestoreError::Damaged),
    }
}

fn damaged(_: quiver_crypto::canonical::Malformed) -> RestoreError {
    RestoreError::Damaged
}
