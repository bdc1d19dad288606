//! Members out of the leader's range in the world: their relays, and the broadcasts that members repeat.

use std::sync::Arc;

use quiver_testbed::nanos;

use super::wire::{Wire, WireContext};
use crate::air::{AirBroadcast, is_rekey};
use crate::event_queue::WorldEvent;
use crate::{NodeId, TwoHopsReport};

impl Wire {
    /// Counts of the leaders' broadcasts of epochs by outcome, if members are out of range.
    pub(super) fn two_hops(&self) -> Option<TwoHopsReport> {
        self.field.as_ref().map(|field| field.report)
    }

    /// The transmissions that take a message over the radio; `None` if nobody is there to pass it on.
    pub(crate) fn radio_legs(
        &self,
        context: &WireContext<'_>,
        from: NodeId,
        to: NodeId,
    ) -> Option<Vec<(NodeId, NodeId)>> {
        let field = self.field.as_ref();
        let relays = field.and_then(|field| field.relays(from).or_else(|| field.relays(to)));
        let Some(relays) = relays else { return Some(vec![(from, to)]) };
        let relay = relays.iter().map(|relay| NodeId::Edge(*relay)).find(|relay| (context.alive)(*relay))?;
        Some(vec![(from, relay), (relay, to)])
    }

    /// Returns true if a node is in range of the leaders.
    pub(crate) fn hears_leaders(&self, node: NodeId) -> bool {
        self.field.as_ref().is_none_or(|field| field.hears_leaders(node))
    }

    /// A leader broadcasts over the radio. Gives the number of the message if it is of an epoch and members
    /// are out of range.
    pub(crate) fn begin_repeats(
        &mut self,
        hub: NodeId,
        payload: &Arc<[u8]>,
        flight: &AirBroadcast,
    ) -> Option<u64> {
        let field = self.field.as_mut().filter(|_| is_rekey(payload))?;
        Some(field.begin(hub, payload, flight.coding()))
    }

    /// A member has a broadcast from the leader.
    pub(crate) fn note_from_leader(
        &mut self,
        context: &mut WireContext<'_>,
        message: Option<u64>,
        to: NodeId,
        arrives: Option<u64>,
    ) {
        let (Some(field), Some(message), NodeId::Edge(edge), Some(at)) =
            (&mut self.field, message, to, arrives)
        else {
            return;
        };
        if field.has(message, edge) {
            return;
        }
        field.report.from_leader += 1;
        let wake = field.receive(message, edge, at);
        plan_repeat(context, message, edge, wake);
    }

    /// A member may have to repeat a broadcast at this time.
    pub(super) fn serve_repeat(&mut self, context: &mut WireContext<'_>, message: u64, edge: u32, at: u64) {
        let busy = self.air.as_ref().map_or(0, |air| nanos(air.medium().busy_until()));
        if !(context.alive)(NodeId::Edge(edge)) {
            return;
        }
        let Some(field) = &mut self.field else { return };
        let (sends, wake) = field.serve(message, edge, at, busy);
        plan_repeat(context, message, edge, wake);
        if sends {
            self.repeat(context, message, edge);
        }
    }

    /// A member repeats a broadcast, or sends false frames in its place.
    fn repeat(&mut self, context: &mut WireContext<'_>, message: u64, from: u32) {
        let (Some(field), Some(air)) = (&mut self.field, &mut self.air) else { return };
        let Some(repeated) = field.message(message) else { return };
        let (hub, payload, coding) = (repeated.hub, Arc::clone(&repeated.payload), repeated.coding);
        let hostile = field.is_hostile(from);
        let flight = air.repeat(context.timeline.time(), NodeId::Edge(from), &payload, coding);
        *if hostile { &mut field.report.false_repetitions } else { &mut field.report.repetitions } += 1;
        field.report.frames += u64::from(flight.frames());
        field.report.airtime += flight.airtime();
        let at = context.timeline.now().saturating_add(nanos(flight.after));
        for edge in field.neighbours(from) {
            let to = NodeId::Edge(edge);
            let on = (context.alive)(to);
            let (Some(field), Some(air)) = (&mut self.field, &mut self.air) else { return };
            // False frames make no message, and count for no repetition.
            if !on || !air.reaches(&flight, to) || hostile {
                continue;
            }
            if field.has(message, edge) {
                field.hear(message, edge);
                continue;
            }
            // The machine has it as the leader's: a radio knows no connections.
            let arrives = self.carry(context, at, (hub, hub), to, &payload, true);
            self.note_hop((NodeId::Edge(from), to), (context.timeline.now(), arrives), &payload);
            if let (Some(field), Some(arrives)) = (&mut self.field, arrives) {
                field.report.from_members += 1;
                let wake = field.receive(message, edge, arrives);
                plan_repeat(context, message, edge, wake);
            }
        }
    }
}

fn plan_repeat(context: &mut WireContext<'_>, message: u64, edge: u32, wake: Option<u64>) {
    if let Some(wake) = wake {
        context.timeline.push(wake, NodeId::Edge(edge), WorldEvent::Repeat { message });
    }
}
