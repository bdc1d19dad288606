//! Frames through two bridges on real sockets: every carrier and endpoint that this machine has, and what does
//! not pass.

mod captured;
mod carriers;
mod corrections;
mod endpoints;
mod filters;
mod group;
mod order;
mod outputs;
mod rekeys;
mod routes;
mod rules;
mod signing;
mod texts;
mod wide;
