//! Drones that enrol with a quorum of KGCs, and KGCs that crash, race, lie and say nothing.

mod enrolment;
mod hostile;
mod races;
mod rounds;
mod world;
