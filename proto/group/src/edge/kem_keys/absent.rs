//! The second factor of an edge where it is compiled out, as on boards: there is none.

use core::convert::Infallible;
use core::marker::PhantomData;

use quiver_ainq::{Error, HeaderCore, KemKey, Suite};

/// No κ.
#[derive(Debug)]
pub(in crate::edge) struct KemKeys<S: Suite>(PhantomData<S>);

impl<S: Suite> KemKeys<S> {
    pub(in crate::edge) const fn new() -> Self {
        Self(PhantomData)
    }

    /// A header that names a second factor is not decoded here.
    pub(in crate::edge) const fn check(&self, _: &HeaderCore<S>) -> Result<(), Error> {
        Ok(())
    }

    pub(in crate::edge) const fn for_header(&self, _: &HeaderCore<S>) -> Result<Option<KemKey<S>>, Error> {
        Ok(None)
    }

    pub(in crate::edge) const fn is_past(&self, _: &HeaderCore<S>) -> bool {
        false
    }

    pub(in crate::edge) const fn follow(&mut self, _: &HeaderCore<S>) {}

    pub(in crate::edge) fn hold(&mut self, _: quiver_ainq::Handle, entered: Entered<S>, _: u64) {
        match entered.0 {}
    }
}

/// Nobody entered with κ.
#[derive(Debug)]
pub(in crate::edge) struct Entered<S: Suite>(Infallible, PhantomData<S>);
