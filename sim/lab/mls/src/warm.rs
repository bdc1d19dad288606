//! A group whose tree is filled: MLS at its best.
//!
//! Adding all members in one commit leaves the inner nodes blank, and a single committer can fill only its
//! own path: each of its commits encrypts to every member anew. The tree is at its best when each inner node
//! has a key, which it gets when somebody beneath it commits. One committer beneath each lowest inner node is
//! enough, so here every other member has committed once, right after it was added with its neighbour.

use crate::member::{Candidate, CommitChanges, MlsMember};
use crate::provider::Provider;
use crate::{Error, Result};

/// Forms a group of the founder and one member per name, warmed pair by pair. Gives the founder and one
/// member from the middle.
///
/// A pair is added in one commit; the first of it joins, commits and is dropped again; the founder and the
/// member from the middle follow. Before each pair `proceed` is asked, with the number of members, whether to
/// go on; returns `None` if it refuses. The members that are dropped check each signature that this process
/// has not checked before.
///
/// # Errors
/// [`Error::Mls`] if the library refuses; [`Error::TooFew`] for fewer than two names.
pub fn warm_group(
    founder: &str,
    names: &[String],
    mut proceed: impl FnMut(usize) -> bool,
) -> Result<Option<(MlsMember, MlsMember)>> {
    let (plain, remembering) = (Provider::default(), Provider::remembering());
    let mut founder = MlsMember::found(founder, &plain)?;
    let mut watched: Option<MlsMember> = None;
    let Some((neighbour, others)) = names.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Err(Error::TooFew);
    };
    // The founder's neighbour needs no other committer beside it.
    let neighbour = Candidate::new(neighbour, &remembering)?;
    founder.commit(CommitChanges { added: &[neighbour.key_package()], ..CommitChanges::default() })?;
    let middle = others.len() / 4;
    for (index, pair) in others.chunks(2).enumerate() {
        if !proceed(2 * index + 1) {
            return Ok(None);
        }
        let provider = if index == middle { &plain } else { &remembering };
        let mut first = add_pair(&mut founder, watched.as_mut(), pair, provider)?;
        let sent = first.commit(CommitChanges::default())?;
        founder.follow(&sent.commit)?;
        match &mut watched {
            Some(watched) => drop(watched.follow(&sent.commit)?),
            None if index == middle => watched = Some(first),
            None => {}
        }
    }
    let sent = founder.commit(CommitChanges::default())?;
    let mut watched = watched.ok_or(Error::TooFew)?;
    watched.follow(&sent.commit)?;
    Ok(Some((founder, watched)))
}

/// Adds one or two members in one commit and gives the first of them.
fn add_pair(
    founder: &mut MlsMember,
    watched: Option<&mut MlsMember>,
    names: &[String],
    provider: &Provider,
) -> Result<MlsMember> {
    let mut pair = names.iter().map(|name| Candidate::new(name, provider)).collect::<Result<Vec<_>>>()?;
    let added: Vec<&[u8]> = pair.iter().map(Candidate::key_package).collect();
    let sent = founder.commit(CommitChanges { added: &added, ..CommitChanges::default() })?;
    if let Some(watched) = watched {
        watched.follow(&sent.commit)?;
    }
    let invitation = sent.invitation.ok_or(Error::NoInvitation)?;
    pair.swap_remove(0).join(&invitation)
}
