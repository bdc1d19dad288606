//! The KGC's side: a share of the master secret, and the rounds in which a KGC signs with it.

mod master;
mod rounds;
mod shares;
mod signer;

pub use self::master::MasterShare;
