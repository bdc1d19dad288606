//! A group's datagrams between members, over links that lose, double and reorder, and against the hostile.

mod bounds;
mod exchange;
mod hostile;
mod order;
mod rekeys;
mod restarts;
mod swarm;
