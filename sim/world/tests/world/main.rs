//! Tests of the virtual world: lives, faults, adversaries, radio, scenarios, and mutations that the
//! invariants must find.

mod admission;
mod adversaries;
mod boards;
mod determinism;
mod life;
mod mavlink;
mod mutations;
mod quorum;
mod radio;
mod ranks;
mod relays;
mod run;
mod scenario;
mod trace;
