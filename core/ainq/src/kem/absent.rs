//! The second factor where it is compiled out, as on boards: there is none. The types have no values, so that
//! what handles them is no code.

use core::convert::Infallible;
use core::marker::PhantomData;

use quiver_crypto::canonical::{Reader, Writer};
use quiver_crypto::{Digest, Secret};

use crate::slots::Slot;
use crate::{AgreedSecret, Error, Suite};

/// No term has a second factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KemTerm(Infallible);

impl KemTerm {
    pub(crate) const fn write(&self, _: &mut Writer) {
        match self.0 {}
    }

    pub(crate) const fn read(_: &mut Reader<'_>) -> Result<Self, Error> {
        Err(Error::OtherKem)
    }
}

/// Nobody has κ.
#[derive(Clone, Debug)]
pub struct KemKey<S: Suite>(Infallible, PhantomData<S>);

impl<S: Suite> KemKey<S> {
    pub(crate) const fn start_chain(&self, _: &AgreedSecret, _: &Digest) -> (Secret<32>, Secret<32>) {
        match self.0 {}
    }
}

/// No term is opened with κ.
#[derive(Debug)]
pub(crate) struct TermKeys<S: Suite>(Infallible, PhantomData<S>);

impl<S: Suite> TermKeys<S> {
    pub(crate) const fn term(&self) -> KemTerm {
        match self.0 {}
    }

    pub(crate) const fn key(&self, _: Slot) -> Option<&KemKey<S>> {
        match self.0 {}
    }
}

pub(crate) const fn check_term<S: Suite>(term: Option<&KemTerm>, _: Option<&KemKey<S>>) -> Result<(), Error> {
    match term {
        None => Ok(()),
        Some(term) => match term.0 {},
    }
}
