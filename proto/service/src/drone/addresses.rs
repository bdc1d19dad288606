//! Addresses of nodes in settings: those listened on, and those dialled.

use quiver_net::{AddressError, Multiaddr, parse_dialled_address, parse_listened_address};

use crate::config::address_form;
use crate::{Error, Result};

/// Reads each text of the setting `key` as an address that is listened on; an error says which form they have
/// ([`address_form`]).
///
/// # Errors
/// [`Error::Config`] with key, text, reason and form. An address with QUIC is one in a build without.
pub fn parse_listened_addresses(key: &str, texts: &[String]) -> Result<Vec<Multiaddr>> {
    addresses_by(parse_listened_address, key, texts)
}

/// Reads the same as addresses that are dialled: one at which nothing can ever be reached is refused.
///
/// # Errors
/// The errors of [`parse_listened_addresses`].
pub fn parse_dialled_addresses(key: &str, texts: &[String]) -> Result<Vec<Multiaddr>> {
    addresses_by(parse_dialled_address, key, texts)
}

fn addresses_by(
    read: impl Fn(&str) -> std::result::Result<Multiaddr, AddressError>,
    key: &str,
    texts: &[String],
) -> Result<Vec<Multiaddr>> {
    let refused =
        |text: &String, error| Error::Config(format!("`{key}`: {text}: {error}; {}", address_form(text)));
    let mut addresses = Vec::new();
    for text in texts {
        let address = read(text).map_err(|error| refused(text, error))?;
        if let Some(other) = addresses.iter().position(|earlier| *earlier == address) {
            return Err(Error::Config(format!("`{key}`: {text} is the same address as {}", texts[other])));
        }
        addresses.push(address);
    }
    Ok(addresses)
}
