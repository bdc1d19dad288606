//! Datagrams (docs/protocol.md, §20), read from their bytes alone.

use std::collections::{BTreeMap, BTreeSet};

use aes::Aes128;
use ccm::aead::inout::InOutBuf;
use ccm::consts::{U8, U13, U16};
use ccm::{AeadInOut, Ccm, KeyInit};
use quiver_ainq::{DronePublicKey, Epoch, LEADER_SLOT, Name, Signature, Slot};
use quiver_crypto::Secret;
use quiver_crypto::canonical::Reader;

use super::{Rules, S, Values, Verdict, bad, lp, require};
use crate::recording::Node;

/// Kinds of datagrams (§20.3).
const MANIFEST: u8 = 6;
const ANNOUNCEMENT: u8 = 7;
const SIGNATURE: usize = 64;

/// A payload, and who has not heard it yet is not known: who has.
#[derive(Clone)]
struct Sent {
    from: Node,
    slot: Slot,
    signed: bool,
    data: Vec<u8>,
    heard: BTreeSet<Node>,
}

#[derive(Clone, Default)]
pub(super) struct Air {
    /// Starts that members announced: boot number and salt.
    starts: BTreeMap<Node, BTreeSet<Vec<u8>>>,
    numbers: BTreeSet<(Node, Epoch, Vec<u8>, Range, u32)>,
    /// Hashes of what was sent unsigned.
    hashes: BTreeMap<(Node, Epoch, Vec<u8>, u32), [u8; 8]>,
    payloads: Vec<Sent>,
}

/// Kinds of numbers that count apart from each other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Range {
    Unsigned,
    Signed,
    Announcements,
}

/// Name of a datagram's kind.
pub(crate) fn kind(bytes: &[u8]) -> &'static str {
    match bytes.first().map(|first| first >> 3 & 7) {
        Some(2 | 3 | 5) => "signed datagram",
        Some(MANIFEST) => "manifest",
        Some(ANNOUNCEMENT) => "announcement",
        _ => "datagram",
    }
}

/// Seven bits a byte, the lowest first.
fn varint(reader: &mut Reader<'_>) -> Verdict<u32> {
    let mut value = 0;
    for shift in (0..21).step_by(7) {
        let byte = reader.u8().map_err(|_| "cut short")?;
        value |= u32::from(byte & 127) << shift;
        if byte < 128 {
            return Ok(value);
        }
    }
    Err("a number without an end".to_string())
}

fn open(
    key: &Secret<32>,
    signed: bool,
    number: u32,
    header: &[u8],
    sealed: &[u8],
    full: bool,
) -> Verdict<Vec<u8>> {
    let key: &[u8; 16] = key.expose().first_chunk().ok_or("no key")?;
    let nonce: [u8; 13] = [&[u8::from(signed)][..], &[0; 8], &number.to_be_bytes()]
        .concat()
        .try_into()
        .map_err(|_| "no nonce")?;
    let (text, tag) =
        sealed.split_at_checked(sealed.len().wrapping_sub(if full { 16 } else { 8 })).ok_or("no tag")?;
    let mut text = text.to_vec();
    let buffer = InOutBuf::from(text.as_mut_slice());
    let opened = if full {
        let tag = tag.try_into().map_err(|_| "no tag")?;
        Ccm::<Aes128, U16, U13>::new(key.into()).decrypt_inout_detached((&nonce).into(), header, buffer, tag)
    } else {
        let tag = tag.try_into().map_err(|_| "no tag")?;
        Ccm::<Aes128, U8, U13>::new(key.into()).decrypt_inout_detached((&nonce).into(), header, buffer, tag)
    };
    opened.map_err(|_| "sealed under no key of its sender's")?;
    Ok(text)
}

impl Rules<'_> {
    /// The epoch that a member sends under, its slot, and K_tr.
    fn sends_under(&self, from: Node) -> Verdict<(Epoch, Slot, Secret<32>)> {
        let (epoch, slot) = if self.run.group.leads(from) {
            let of = |epoch: &&Epoch| self.run.group.opener(**epoch) == Some(from);
            (*self.made.keys().rev().find(of).ok_or("it leads no term")?, LEADER_SLOT)
        } else {
            let (epoch, _) = self.held.get(from).ok_or("it holds no epoch")?;
            require(self.activated.contains(&(from, *epoch)), "a key that it does not use")?;
            require(self.in_step.contains(from), "it is not in step")?;
            (*epoch, self.newest_pair(from)?.slot)
        };
        let made = &self.made[&epoch];
        let key = made.key.as_ref().ok_or("nobody was given its key")?;
        Ok((epoch, slot, self.table.prf("traffic", key, &[("digest", &made.digest)])))
    }

    pub(super) fn datagram(&mut self, from: Node, bytes: &[u8]) -> Verdict {
        let (epoch, own, traffic) = self.sends_under(from)?;
        let mut reader = Reader::new(bytes);
        let first = reader.u8().map_err(|_| "empty")?;
        require(first >> 6 == 1, "another version")?;
        require(u64::from(first & 7) == epoch.counter & 7, "another epoch")?;
        let slot = varint(&mut reader)?.checked_sub(1).unwrap_or(LEADER_SLOT);
        require(slot == own, "another slot")?;
        let key_of = |name: &str, start: &[u8]| {
            self.table.prf(name, &traffic, &[("slot", &slot.to_be_bytes()), ("start", start)])
        };
        let kind = first >> 3 & 7;
        let lead = bytes.len() - reader.remaining();
        if kind == ANNOUNCEMENT {
            let start = bytes.get(lead..lead + 12).ok_or("no start")?;
            let number = bytes.get(lead + 12..lead + 16).ok_or("no number")?;
            let number = u32::from_be_bytes(number.try_into().map_err(|_| "no number")?);
            let (header, sealed) = bytes.split_at(lead + 16);
            let text = open(&key_of("announcement", start), false, number, header, sealed, true)?;
            self.numbered((from, epoch, start.to_vec(), Range::Announcements, number))?;
            self.air.starts.entry(from).or_default().insert(start.to_vec());
            return self.announced(from, epoch, (slot, start), &text);
        }
        let number = u32::from(reader.u16().map_err(|_| "no number")?);
        let (header, sealed) = bytes.split_at(lead + 2);
        let signed = matches!(kind, 2 | 3 | 5 | MANIFEST);
        let starts = self.air.starts.get(from).ok_or("it announced no start")?;
        let (start, text) = starts
            .iter()
            .find_map(|start| {
                let text = open(&key_of("datagram", start), signed, number, header, sealed, false).ok()?;
                Some((start.clone(), text))
            })
            .ok_or("sealed under no key of its sender's")?;
        let range = if signed { Range::Signed } else { Range::Unsigned };
        self.numbered((from, epoch, start.clone(), range, number))?;
        let body = if signed {
            let (body, signature) =
                text.split_at_checked(text.len().wrapping_sub(SIGNATURE)).ok_or("unsigned")?;
            let key = self.keys.get(from).ok_or("nobody knows its key")?;
            self.signed(from, epoch, (slot, &start), (kind, number, body), signature, &key.clone())?;
            body
        } else {
            let hash = self.manifest_hash(kind, number, &text);
            self.air.hashes.insert((from, epoch, start.clone(), number), hash);
            &text[..]
        };
        if kind == MANIFEST {
            return self.manifest(from, epoch, &start, body);
        }
        let mut payloads = Vec::new();
        let mut rest =
            Reader::new(if matches!(kind, 4 | 5) { body.get(5..).unwrap_or_default() } else { body });
        if matches!(kind, 0 | 2) {
            payloads.push(body.to_vec());
        } else {
            while rest.remaining() > 0 {
                let length = varint(&mut rest)? as usize;
                payloads.push(rest.take(length).map_err(|_| "cut short")?.to_vec());
            }
        }
        let sent = |data| Sent { from, slot, signed, data, heard: BTreeSet::new() };
        self.air.payloads.extend(payloads.into_iter().map(sent));
        Ok(())
    }

    fn numbered(&mut self, number: (Node, Epoch, Vec<u8>, Range, u32)) -> Verdict {
        require(self.air.numbers.insert(number), "a number that was used")
    }

    fn manifest_hash(&self, kind: u8, number: u32, body: &[u8]) -> [u8; 8] {
        let values: Values<'_> = &[("kind", &[kind]), ("number", &number.to_be_bytes()), ("body", &lp(body))];
        *self.table.hash("manifest", values).first_chunk().expect("a digest has 32 bytes")
    }

    /// §20.5: the drone whose key this is signed what it sent.
    fn signed(
        &self,
        from: Node,
        epoch: Epoch,
        (slot, start): (Slot, &[u8]),
        (kind, number, body): (u8, u32, &[u8]),
        signature: &[u8],
        key: &DronePublicKey<S>,
    ) -> Verdict {
        require(self.keys.get(from).is_some_and(|known| known.encode() == key.encode()), "another's key")?;
        let values: Values<'_> = &[
            ("digest", &self.made[&epoch].digest),
            ("slot", &slot.to_be_bytes()),
            ("start", start),
            ("kind", &[kind]),
            ("number", &number.to_be_bytes()),
            ("body", &lp(body)),
        ];
        let (label, statement) = self.table.statement("datagram", values);
        self.verify(&Signature::decode(signature).map_err(bad)?, key, label, &statement)
    }

    /// §20.4: flags, time between manifests, next number, whom it asks, and what it signed.
    fn announced(&mut self, from: Node, epoch: Epoch, sender: (Slot, &[u8]), text: &[u8]) -> Verdict {
        let mut reader = Reader::new(text);
        let cut = |_| "cut short".to_string();
        let (flags, interval) = (reader.u8().map_err(cut)?, reader.u8().map_err(cut)?);
        reader.u32().map_err(cut)?;
        for _ in 0..reader.u8().map_err(cut)? {
            reader.u8().map_err(cut)?;
            varint(&mut reader)?;
        }
        if flags == 0 {
            return require(reader.remaining() == 0, "more than it says");
        }
        let mut body = vec![interval];
        if flags & 2 > 0 {
            body.extend(reader.u32().map_err(cut)?.to_be_bytes());
        }
        let signature = reader.take(SIGNATURE).map_err(cut)?;
        let key = reader.take(reader.remaining()).map_err(cut)?;
        let key = DronePublicKey::<S>::decode(key).map_err(bad)?;
        self.key(from, &key)?;
        self.signed(from, epoch, sender, (ANNOUNCEMENT, 0, &body), signature, &key)
    }

    /// §20.6: hashes of what this very sender sent unsigned.
    fn manifest(&self, from: Node, epoch: Epoch, start: &[u8], body: &[u8]) -> Verdict {
        let (first, hashes) = body.split_first_chunk::<4>().ok_or("no number")?;
        for (number, hash) in (u32::from_be_bytes(*first)..).zip(hashes.chunks(8)) {
            let sent = self.air.hashes.get(&(from, epoch, start.to_vec(), number));
            require(sent.is_some_and(|sent| sent == hash), "a hash of what it did not send")?;
        }
        Ok(())
    }

    /// A payload that is heard was sent from that slot, by that signer if it is signed, and is heard once.
    pub(super) fn heard(&mut self, at: Node, slot: Slot, signer: Option<&Name>, data: &[u8]) -> Verdict {
        let sent = self.air.payloads.iter_mut().find(|sent| {
            let same = sent.slot == slot && sent.data == data && sent.signed == signer.is_some();
            let named = signer.is_none_or(|signer| signer.as_bytes() == sent.from.as_bytes());
            same && named && sent.from != at && !sent.heard.contains(at)
        });
        sent.ok_or("nobody sent that, or it was heard before")?.heard.insert(at);
        Ok(())
    }
}
