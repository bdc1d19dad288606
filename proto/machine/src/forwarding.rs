//! Macros that implement a role by forwarding its calls to the machine within, for programs that run one of several.

#[doc(hidden)]
pub use quiver_message::Message;
#[doc(hidden)]
pub use rand_core::CryptoRngCore;

/// Implements [`Primary`](crate::Primary) by forwarding every call: written as the head of the implementation, with the arms of
/// a `match` that bind the machine within. Parameters of the type stand in brackets behind `impl`.
#[macro_export]
macro_rules! forward_primary {
    (
        impl $([$($generics:tt)*])? Primary<Suite = $suite:ty> for $role:ty {
            $($arm:pat => $within:ident),+ $(,)?
        }
    ) => {
        impl $(<$($generics)*>)? $crate::Primary for $role {
            type Suite = $suite;

            fn decode(
                &mut self,
                from: ($crate::Peer, $crate::Via),
                bytes: &[u8],
            ) -> Option<$crate::forwarding::Message<$suite>> {
                match self {
                    $($arm => $within.decode(from, bytes),)+
                }
            }

            fn receive(
                &mut self,
                now: $crate::Now,
                from: ($crate::Peer, $crate::Via),
                message: $crate::forwarding::Message<$suite>,
                rng: &mut dyn $crate::forwarding::CryptoRngCore,
            ) {
                match self {
                    $($arm => $within.receive(now, from, message, rng),)+
                }
            }

            fn wake(&mut self, now: $crate::Now, rng: &mut dyn $crate::forwarding::CryptoRngCore) {
                match self {
                    $($arm => $within.wake(now, rng),)+
                }
            }

            fn blame(&mut self, from: ($crate::Peer, $crate::Via), offence: $crate::Offence) {
                match self {
                    $($arm => $within.blame(from, offence),)+
                }
            }

            fn shared(&self) -> $crate::SharedRoleState<'_, $suite> {
                match self {
                    $($arm => $within.shared(),)+
                }
            }
        }
    };
}

/// Defines those functions of a [`Machine`](crate::Machine) that a leader has beside its inputs and outputs, by forwarding
/// them: its jobs, and its broadcasts to relays. The arms bind the machine within.
#[macro_export]
macro_rules! forward_jobs {
    ($($arm:pat => $within:ident),+ $(,)?) => {
        fn take_job(&mut self) -> Option<$crate::Job> {
            match self {
                $($arm => $within.take_job(),)+
            }
        }

        fn take_broadcast(&mut self) -> Option<$crate::RelayedBroadcast> {
            match self {
                $($arm => $within.take_broadcast(),)+
            }
        }

        fn finish_job(
            &mut self,
            now: $crate::Now,
            done: $crate::FinishedJob,
            rng: &mut dyn $crate::forwarding::CryptoRngCore,
        ) {
            match self {
                $($arm => $within.finish_job(now, done, rng),)+
            }
        }
    };
}
