//! Replays a leader's stored records: rebuilds its state, one change after another.

use alloc::boxed::Box;
use alloc::vec::Vec;

use quiver_ainq::{
    Deployment, DroneKeypair, DronePublicKey, Element, Epoch, Handle, KemKey, Name, PendingEnrolment, Roster,
    Slot, Suite,
};
use quiver_machine::RestoreError;

use super::record::VERSION;
use super::{Change, LeaderRecord, LeaderStore, Spare};

impl<S: Suite> LeaderStore<S> {
    /// Applies a stored record.
    pub(in crate::leader) fn replay(
        &mut self,
        deployment: &Deployment<S>,
        record: &LeaderRecord,
    ) -> Result<(), RestoreError> {
        let changes: Vec<Change> =
            postcard::from_bytes(record.as_bytes()).map_err(|_| RestoreError::Damaged)?;
        changes.iter().try_for_each(|change| self.apply(deployment, change))
    }

    fn apply(&mut self, deployment: &Deployment<S>, change: &Change) -> Result<(), RestoreError> {
        match change {
            Change::Origin { .. }
            | Change::Boot(_)
            | Change::Pending(_)
            | Change::Enrolled { .. }
            | Change::Revocations(_) => self.apply_to_self(deployment, change),
            Change::Member { .. }
            | Change::Vacated(_)
            | Change::Evicted(_)
            | Change::Spare { .. }
            | Change::Anew
            | Change::Away { .. }
            | Change::Departed { .. }
            | Change::Held { .. } => self.apply_to_group(change),
            Change::Pin { .. }
            | Change::Epoch { .. }
            | Change::Evidence(_)
            | Change::Notice(_)
            | Change::Refused { .. } => self.apply_to_history(deployment, change),
            Change::KemTerms(_) | Change::KemKey { .. } => self.apply_to_kem(change),
        }
    }

    /// Applies records of this leader's own memory and of the KGC's answers.
    fn apply_to_self(&mut self, deployment: &Deployment<S>, change: &Change) -> Result<(), RestoreError> {
        match change {
            Change::Origin { version, .. } if *version != VERSION => {
                return Err(RestoreError::OtherVersion { found: *version, expected: VERSION });
            }
            Change::Origin { deployment: origin, .. } if *origin != deployment.fingerprint() => {
                return Err(RestoreError::Foreign);
            }
            Change::Boot(boot_no) => self.boot_no = *boot_no,
            Change::Pending(bytes) => self.pending = Some(PendingEnrolment::decode(bytes)?),
            Change::Enrolled { public, secret } => {
                let public = DronePublicKey::decode(public)?;
                self.keypair = Some(DroneKeypair::restore(deployment, public, secret)?);
                self.pending = None;
            }
            Change::Revocations(list) => {
                self.revocations.offer(deployment, list)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Applies records of the group: members, barred drones, spare points.
    fn apply_to_group(&mut self, change: &Change) -> Result<(), RestoreError> {
        match change {
            Change::Member { slot, public } => self.seat(*slot, DronePublicKey::decode(public)?)?,
            Change::Vacated(slot) => {
                self.roster.remove(*slot);
                self.remove_spare(*slot);
            }
            Change::Evicted(serial) => {
                // §19: of one whose turn had not come there is no record of the slot.
                if let Some(slot) = self.roster.evict(*serial) {
                    self.remove_spare(slot);
                }
            }
            Change::Spare { slot, q, point, signature } => {
                let point = (!point.is_empty()).then(|| Element::<S>::decode(point)).transpose()?;
                let point = point.map(|point| *point.encoding());
                let signature: Box<[u8]> = signature.clone().into_boxed_slice();
                self.set_spare(*slot, Spare { q: *q, point, signature, used: 0 });
            }
            Change::Anew => {
                // §10.2: a copy takes the place of the roster as a whole.
                (self.roster, self.spares) = (Roster::new(), Vec::new());
                self.away.clear();
            }
            Change::Away { name, serial } => {
                self.note_away(Name::from_bytes(name)?, *serial);
            }
            Change::Held { term, counter, digest } => {
                self.hold(Epoch { term: *term, counter: *counter }, *digest);
            }
            Change::Departed { term, counter, slots } => {
                // §12.1: the holders of these slots on the roster held are out.
                self.departed(slots, Epoch { term: *term, counter: *counter });
            }
            _ => {}
        }
        Ok(())
    }

    /// Applies records of the second factor.
    fn apply_to_kem(&mut self, change: &Change) -> Result<(), RestoreError> {
        let own = self.keypair.as_ref().map(|keypair| keypair.public().handle());
        match change {
            Change::KemTerms(g) => self.kem.replay_count(own.as_ref(), *g),
            Change::KemKey { drone, key, made } => {
                self.kem.replay_key(own.as_ref(), Handle(*drone), KemKey::decode(key)?, *made);
            }
            _ => {}
        }
        Ok(())
    }

    /// Applies records of headers seen and signed.
    fn apply_to_history(&mut self, deployment: &Deployment<S>, change: &Change) -> Result<(), RestoreError> {
        match change {
            Change::Pin { serial, handle } => {
                self.pin(*serial, Handle(*handle));
            }
            Change::Epoch { term, counter, digest } => {
                self.newest = Some((Epoch { term: *term, counter: *counter }, *digest));
            }
            // Applied twice by a compaction, it is still one piece of evidence.
            Change::Evidence(request) if self.evidence.contains(request) => {}
            Change::Evidence(request) => self.evidence.push(request.clone()),
            Change::Notice(message) => self.notices.replay(deployment, message, &self.roster)?,
            Change::Refused { serial, proof } => {
                self.refused.insert(*serial, proof.clone());
            }
            _ => {}
        }
        Ok(())
    }

    fn seat(&mut self, slot: Slot, public: DronePublicKey<S>) -> Result<(), RestoreError> {
        if self.roster.is_evicted(&public.identity.serial) {
            // An old change, applied once more over a compacted log: the drone was evicted since.
            return Ok(());
        }
        self.away.remove(&public.identity.name);
        if let Some(former) = self.roster.find(&public.identity.serial) {
            self.roster.remove(former);
        }
        self.roster.remove(slot);
        self.remove_spare(slot);
        Ok(self.roster.insert(slot, public)?)
    }
}
