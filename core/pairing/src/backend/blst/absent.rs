//! No blst: arkworks alone.

/// Back end that this build computes with.
pub(super) mod chosen {
    use crate::backend::Arkworks;

    /// Every curve is: arkworks needs nothing but its parameters.
    pub trait Supported {}

    impl<C> Supported for C {}

    /// The back end of this build.
    pub type Active = Arkworks;
}
