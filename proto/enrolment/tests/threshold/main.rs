//! Drones that enrol with a quorum of KGCs, and KGCs that crash, race, lie and say nothing.

mod enrolling;
mod hostile;
mod racing;
mod rounds;
mod world;
