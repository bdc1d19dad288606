//! Re-key of Group OSCORE: the "Point-to-Point" scheme of RFC 9594, as draft-ietf-ace-key-groupcomm-oscore uses it.
//!
//! The Group Manager sends each member a CoAP POST under the OSCORE context that the two share since the member joined:
//! a new Master Secret and a new Gid, the version of the keying material, and the Sender IDs that have become stale.
//! Answers are the delivery's reports.
//!
//! ```text
//! message    CoAP header, token of one byte, option OSCORE (RFC 8613), AES-CCM-16-64-128 of:
//!            POST, Uri-Path of one byte, Content-Format 261, and as payload the map
//! {7: gkty, 8: {2: ms, 6: contextId}, 9: num, 10: ace_groupcomm_profile, 11: exp, 12: exi, 34: stale_node_ids}
//! ```
//!
//! | number | of | where it stands |
//! |---|---|---|
//! | 7, 8, 9, 10, 11, 12 | `gkty`, `key`, `num`, `ace_groupcomm_profile`, `exp`, `exi` | RFC 9594, section 8 |
//! | 34 | `stale_node_ids` | the draft, "ACE Groupcomm Parameters" among its IANA considerations: suggested |
//! | 1 | as `gkty` a Group_OSCORE_Input_Material object, as profile coap_group_oscore_app | the draft's registrations: suggested |
//! | 2, 6 | `ms`, `contextId` of an OSCORE_Input_Material object | RFC 9203, section 3.2.1 |
//! | 261 | Content-Format application/ace-groupcomm+cbor | RFC 9594, section 11.2 |
//! | 0.02 | POST to the member's `control_uri` | RFC 9594, section 6.1 |
//!
//! The draft is revision 20 of February 2026. Its section on sending rekeying messages has just these parameters with
//! `ms` and `contextId` as a must, a new Master Salt as a may, and the stale Sender IDs as an array of byte strings. If
//! other numbers are assigned the message keeps its length: a key type and a profile below 24 take one byte, a parameter
//! from 24 to 255 takes two.
//!
//! Left out, in its favour, are the credentials of newcomers (`creds`, `peer_roles`, `peer_identifiers`), which such a
//! message should carry after a join: members can fetch them when they need them. The shared context would come of ACE;
//! here it comes of X25519 between long-term keys.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use aes::Aes128;
use ccm::aead::inout::InOutBuf;
use ccm::consts::{U8, U13};
use ccm::{AeadInOut, Ccm, KeyInit};
use quiver_crypto::{Secret, Zeroizing, extract};
use rand_core::CryptoRngCore;

use super::pairwise::{controller_identity, member_identity};
use super::{GroupKey, Setting, X25519Identity};
use crate::contract::{Contender, ContenderError, Facts, KeyState, MemberId, Participant, SecretsOrigin};
use crate::scheme::{Audience, KeyHolder, KeyScheme, Parcel, ReceivedParcel, SchemeController, SchemeMember};

/// CON, a token of one byte; POST; two bytes of Message ID; the token.
const COAP_HEADER: [u8; 5] = [0x41, 0x02, 0, 0, 0x01];
/// Flags of the option OSCORE: a Partial IV of four bytes and no kid.
const FLAGS: u8 = 0x04;
const PARTIAL_IV: usize = 4;
const TAG: usize = 8;
/// POST, Uri-Path `r`, Content-Format 261, payload marker.
const INNER: [u8; 7] = [0x02, 0xB1, b'r', 0x12, 0x01, 0x05, 0xFF];
/// Validity of keying material in seconds.
const VALIDITY: u64 = 3600;

/// Group OSCORE, re-keyed point to point.
#[derive(Debug)]
pub struct GroupOscore {
    setting: Setting,
    controller: [u8; 32],
    version: Rc<Cell<u64>>,
}

impl GroupOscore {
    /// Sets it up.
    #[must_use]
    pub fn new(setting: Setting) -> Self {
        let controller = controller_identity(&setting, SecretsOrigin::Genuine).public();
        Self { setting, controller, version: Rc::default() }
    }
}

impl Contender for GroupOscore {
    fn name(&self) -> &'static str {
        "Group OSCORE re-key"
    }

    fn facts(&self) -> Facts {
        Facts {
            needs_leader: "yes: the Group Manager",
            heals: "no: a stolen context with the Group Manager opens every key sent under it",
            proof: "none of the re-key; of OSCORE's parts",
            standard: "RFC 10021 with RFC 9594 and draft-ietf-ace-key-groupcomm-oscore",
            quantum: "as the exchange that made the contexts; here X25519, so no",
            notes: "Credentials of newcomers are left out of the messages, contexts are there from the beginning, and \
                    reports of the delivery stand for CoAP's answers.",
        }
    }

    fn controller(&mut self, authority: SecretsOrigin) -> Result<Box<dyn Participant>, ContenderError> {
        let identity = controller_identity(&self.setting, authority);
        let genuine = authority == SecretsOrigin::Genuine;
        let version = if genuine { Rc::clone(&self.version) } else { Rc::new(Cell::new(1 << 30)) };
        let publics =
            (0..self.setting.members).map(|id| member_identity(&self.setting, id).public()).collect();
        let scheme = GroupManager { identity, publics, contexts: BTreeMap::new(), version, key: None };
        Ok(Box::new(SchemeController::new(scheme, self.setting.pace)))
    }

    fn member(&mut self, id: MemberId) -> Result<Box<dyn Participant>, ContenderError> {
        let identity = member_identity(&self.setting, id);
        let shared = identity.agree(self.controller, self.controller, identity.public());
        let context = shared.map(|shared| OscoreContext::of(&shared));
        Ok(Box::new(SchemeMember::new(OscoreMember { context, key: None }, self.setting.pace)))
    }
}

/// The Group Manager's Sender Context for one member, and that member's Recipient Context.
struct OscoreContext {
    key: Secret<16>,
    common_iv: [u8; 13],
}

impl OscoreContext {
    fn of(shared: &Secret<32>) -> Self {
        let derived = extract(b"OSCORE", shared.expose());
        let (mut key, mut common_iv) = (Zeroizing::new([0; 16]), [0; 13]);
        key.iter_mut().zip(derived.expose()).for_each(|(to, from)| *to = *from);
        let iv = derived.expose().iter().skip(16);
        common_iv.iter_mut().zip(iv).for_each(|(to, from)| *to = *from);
        Self { key: Secret::new(*key), common_iv }
    }

    /// RFC 8613, 5.2, with an empty id: the Partial IV at the end of the Common IV.
    fn nonce(&self, partial_iv: [u8; PARTIAL_IV]) -> [u8; 13] {
        let mut nonce = self.common_iv;
        nonce.iter_mut().rev().zip(partial_iv.iter().rev()).for_each(|(to, from)| *to ^= *from);
        nonce
    }

    fn cipher(&self) -> Ccm<Aes128, U8, U13> {
        Ccm::new(self.key.expose().into())
    }

    /// external_aad of RFC 8613, 5.4, without what both sides know: the Partial IV.
    fn seal(&self, partial_iv: [u8; PARTIAL_IV], plaintext: &[u8]) -> Vec<u8> {
        let mut bytes = COAP_HEADER.to_vec();
        // Option 9 with a value of five bytes.
        bytes.extend([0x95, FLAGS]);
        bytes.extend(partial_iv);
        bytes.push(0xFF);
        let mut body = plaintext.to_vec();
        let nonce = self.nonce(partial_iv);
        let buffer = InOutBuf::from(body.as_mut_slice());
        let sealed = self.cipher().encrypt_inout_detached((&nonce).into(), &partial_iv, buffer);
        // It fails beyond the cipher's limit alone; then nothing leaves.
        let Ok(tag) = sealed else { return Vec::new() };
        bytes.extend(&body);
        bytes.extend_from_slice(&tag);
        bytes
    }

    fn open(&self, bytes: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let (option, rest) = bytes.strip_prefix(&COAP_HEADER)?.split_first_chunk::<2>()?;
        if *option != [0x95, FLAGS] {
            return None;
        }
        let (partial_iv, rest) = rest.split_first_chunk::<PARTIAL_IV>()?;
        let sealed = rest.strip_prefix(&[0xFF])?;
        let (body, tag) = sealed.split_at_checked(sealed.len().checked_sub(TAG)?)?;
        let mut plaintext = Zeroizing::new(body.to_vec());
        let nonce = self.nonce(*partial_iv);
        let buffer = InOutBuf::from(plaintext.as_mut_slice());
        let opened =
            self.cipher().decrypt_inout_detached((&nonce).into(), partial_iv, buffer, tag.try_into().ok()?);
        opened.ok().map(|()| plaintext)
    }
}

/// The beginning of a CBOR item (RFC 8949, 3).
fn head(major: u8, value: u64, out: &mut Vec<u8>) {
    let major = major << 5;
    match value {
        0..24 => out.push(major | u8::try_from(value).unwrap_or(0)),
        24..0x100 => out.extend([major | 24, u8::try_from(value).unwrap_or(0)]),
        0x100..0x1_0000 => {
            out.push(major | 25);
            out.extend(u16::try_from(value).unwrap_or(0).to_be_bytes());
        }
        _ => {
            out.push(major | 26);
            out.extend(u32::try_from(value).unwrap_or(u32::MAX).to_be_bytes());
        }
    }
}

/// The group key of a Master Secret.
fn group_key(epoch: u64, master_secret: &[u8]) -> GroupKey {
    GroupKey::new(epoch, extract(b"group", master_secret))
}

fn payload(master_secret: &[u8; 16], version: u64, stale: &[MemberId]) -> Zeroizing<Vec<u8>> {
    let mut out = Zeroizing::new(INNER.to_vec());
    head(5, 7, &mut out);
    for (label, value) in [(7, 1), (9, version), (10, 1), (11, VALIDITY), (12, VALIDITY)] {
        head(0, label, &mut out);
        head(0, value, &mut out);
    }
    head(0, 34, &mut out);
    head(4, stale.len() as u64, &mut out);
    for member in stale {
        // Sender IDs of two bytes, or of three in groups of more than 65,536.
        let id = member.to_be_bytes();
        let id = if *member < 1 << 16 { &id[2..] } else { &id[1..] };
        head(2, id.len() as u64, &mut out);
        out.extend(id);
    }
    head(0, 8, &mut out);
    head(5, 2, &mut out);
    // The Gid: a prefix of the group's, and the version.
    head(0, 6, &mut out);
    head(2, 4, &mut out);
    out.extend(u32::try_from(version).unwrap_or(u32::MAX).to_be_bytes());
    head(0, 2, &mut out);
    head(2, 16, &mut out);
    out.extend(master_secret);
    out
}

struct GroupManager {
    identity: X25519Identity,
    publics: Vec<[u8; 32]>,
    contexts: BTreeMap<MemberId, OscoreContext>,
    version: Rc<Cell<u64>>,
    key: Option<GroupKey>,
}

impl KeyScheme for GroupManager {
    fn rekey(
        &mut self,
        added: &[MemberId],
        removed: &[MemberId],
        rng: &mut dyn CryptoRngCore,
    ) -> Result<Vec<Parcel>, String> {
        removed.iter().for_each(|member| drop(self.contexts.remove(member)));
        for member in added {
            let public = *self.publics.get(*member as usize).ok_or("unknown member")?;
            let shared =
                self.identity.agree(public, self.identity.public(), public).ok_or("weak public key")?;
            self.contexts.insert(*member, OscoreContext::of(&shared));
        }
        let version = self.version.get() + 1;
        self.version.set(version);
        let partial_iv = u32::try_from(version).map_err(|_| "no Partial IV is left")?.to_be_bytes();
        let master_secret = Secret::<16>::random(rng);
        let payload = payload(master_secret.expose(), version, removed);
        let seal = |(member, context): (&MemberId, &OscoreContext)| Parcel {
            to: Audience::One(*member),
            bytes: context.seal(partial_iv, &payload),
        };
        let parcels = self.contexts.iter().map(seal).collect();
        self.key = Some(group_key(version, master_secret.expose()));
        Ok(parcels)
    }

    fn key_state(&self) -> Option<KeyState> {
        self.key.as_ref().map(|group| group.state)
    }
}

struct OscoreMember {
    context: Option<OscoreContext>,
    key: Option<GroupKey>,
}

impl OscoreMember {
    fn opened(&self, bytes: &[u8]) -> Option<GroupKey> {
        let plaintext = self.context.as_ref()?.open(bytes)?;
        let master_secret = plaintext.strip_prefix(&INNER)?.last_chunk::<16>()?;
        // The replay window: the Partial IV is the version here.
        let (_, rest) = bytes.split_at_checked(COAP_HEADER.len() + 2)?;
        let version = u64::from(u32::from_be_bytes(*rest.first_chunk()?));
        let is_new = self.key.as_ref().is_none_or(|held| held.state.epoch < version);
        is_new.then(|| group_key(version, master_secret))
    }
}

impl KeyHolder for OscoreMember {
    fn open(&mut self, received: ReceivedParcel<'_>) {
        if let Some(key) = self.opened(received.bytes) {
            self.key = Some(key);
        }
    }

    fn key_state(&self) -> Option<KeyState> {
        self.key.as_ref().map(|group| group.state)
    }

    fn captured_key(&self) -> Option<Secret<32>> {
        self.key.as_ref().map(|group| group.key.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_opens_once_made_and_not_otherwise() {
        let context = OscoreContext::of(&Secret::new([7; 32]));
        let payload = payload(&[9; 16], 300, &[1, 70_000]);
        let sealed = context.seal(300_u32.to_be_bytes(), &payload);
        assert_eq!(sealed.len(), 5 + 2 + 4 + 1 + payload.len() + TAG);
        assert_eq!(*context.open(&sealed).unwrap(), *payload);
        for length in 0..sealed.len() {
            assert!(context.open(&sealed[..length]).is_none());
            let mut forged = sealed.clone();
            forged[length] ^= 1;
            assert!(context.open(&forged).is_none(), "byte {length}");
        }
        assert!(OscoreContext::of(&Secret::new([8; 32])).open(&sealed).is_none());
    }

    #[test]
    fn the_payload_is_the_map_that_the_draft_describes() {
        let payload = payload(&[0xAA; 16], 2, &[5]);
        let map = payload.strip_prefix(&INNER).unwrap();
        let expected = [
            &[0xA7, 7, 1, 9, 2, 10, 1, 11, 0x19, 0x0E, 0x10, 12, 0x19, 0x0E, 0x10][..],
            &[0x18, 34, 0x81, 0x42, 0, 5, 8, 0xA2, 6, 0x44, 0, 0, 0, 2, 2, 0x50],
            &[0xAA; 16],
        ]
        .concat();
        assert_eq!(map, expected);
    }
}
