//! Groups of eight through every event: all members agree, no other drone does, and the counted bytes are
//! those sent.

use mls_rs::MlsMessage;
use quiver_mls::provider::Provider;
use quiver_mls::{Candidate, CommitChanges, CommitMessages, Error, Leaf, MlsMember, warm_group};

const N: usize = 8;

/// A committer and all its members.
struct World {
    founder: MlsMember,
    members: Vec<MlsMember>,
}

fn candidates(what: &str, count: usize) -> Vec<Candidate> {
    let provider = Provider::default();
    (0..count).map(|i| Candidate::new(&format!("{what}-{i}"), &provider).unwrap()).collect()
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|i| format!("drone-{i}")).collect()
}

impl World {
    fn formed() -> Self {
        let founder = MlsMember::found("leader", &Provider::default()).unwrap();
        let mut world = Self { founder, members: Vec::new() };
        world.admit(candidates("drone", N));
        world
    }

    fn admit(&mut self, newcomers: Vec<Candidate>) -> CommitMessages {
        let added: Vec<&[u8]> = newcomers.iter().map(Candidate::key_package).collect();
        let sent = self.founder.commit(CommitChanges { added: &added, ..CommitChanges::default() }).unwrap();
        self.follow(&sent);
        let invitation = sent.invitation.as_ref().unwrap();
        self.members.extend(newcomers.into_iter().map(|newcomer| newcomer.join(invitation).unwrap()));
        sent
    }

    /// Removes the members at these places and gives them, as they are after the commit reached them too.
    fn remove(&mut self, places: &[usize]) -> (CommitMessages, Vec<MlsMember>) {
        let leaves: Vec<Leaf> = places.iter().map(|place| self.members[*place].leaf()).collect();
        let sent =
            self.founder.commit(CommitChanges { removed: &leaves, ..CommitChanges::default() }).unwrap();
        let (mut out, rest) =
            std::mem::take(&mut self.members).into_iter().partition(|member| leaves.contains(&member.leaf()));
        self.members = rest;
        self.follow(&sent);
        for member in &mut out {
            assert!(!member.follow(&sent.commit).unwrap());
        }
        (sent, out)
    }

    fn follow(&mut self, sent: &CommitMessages) {
        for member in &mut self.members {
            assert!(member.follow(&sent.commit).unwrap());
        }
    }

    fn expect_agreement(&self) {
        let secret = self.founder.secret().unwrap();
        assert_eq!(self.founder.members(), self.members.len() + 1);
        for member in &self.members {
            assert_eq!(member.secret().unwrap(), secret);
            assert_eq!(member.epoch(), self.founder.epoch());
        }
    }
}

fn expect_serialised(sent: &CommitMessages, invites: bool) {
    let length = |bytes: &[u8]| MlsMessage::from_bytes(bytes).unwrap().to_bytes().unwrap().len();
    assert!(!sent.commit.is_empty());
    assert_eq!(length(&sent.commit), sent.commit.len());
    assert_eq!(sent.invitation.is_some(), invites);
    if let Some(invitation) = &sent.invitation {
        assert!(!invitation.tree.is_empty());
        assert_eq!(length(&invitation.welcome), invitation.welcome.len());
        assert_eq!(invitation.len(), invitation.welcome.len() + invitation.tree.len());
    }
}

#[test]
fn all_members_agree_after_every_event() {
    let mut world = World::formed();
    world.expect_agreement();
    let mut secrets = vec![world.founder.secret().unwrap()];

    let update = world.founder.commit(CommitChanges::default()).unwrap();
    world.follow(&update);
    world.expect_agreement();
    expect_serialised(&update, false);
    secrets.push(world.founder.secret().unwrap());

    let (leave, _) = world.remove(&[3]);
    world.expect_agreement();
    expect_serialised(&leave, false);
    secrets.push(world.founder.secret().unwrap());

    let join = world.admit(candidates("newcomer", 1));
    world.expect_agreement();
    expect_serialised(&join, true);
    secrets.push(world.founder.secret().unwrap());

    world.admit(candidates("late", 3));
    world.expect_agreement();
    secrets.push(world.founder.secret().unwrap());

    world.remove(&[0, 5, 7]);
    world.expect_agreement();
    secrets.push(world.founder.secret().unwrap());

    for (i, secret) in secrets.iter().enumerate() {
        assert!(!secrets[..i].contains(secret), "epoch {i} repeats a secret");
    }
}

#[test]
fn removed_member_cannot_follow() {
    let mut world = World::formed();
    let (_, mut out) = world.remove(&[2]);
    assert_ne!(out[0].secret().unwrap(), world.founder.secret().unwrap());
    let update = world.founder.commit(CommitChanges::default()).unwrap();
    world.follow(&update);
    world.expect_agreement();
    assert!(matches!(out[0].follow(&update.commit), Err(Error::Mls(_))));
    assert_ne!(out[0].secret().unwrap(), world.founder.secret().unwrap());
}

#[test]
fn stranger_cannot_join_with_somebody_elses_welcome() {
    let mut world = World::formed();
    let sent = world.admit(candidates("newcomer", 1));
    let stranger = candidates("stranger", 1).remove(0);
    assert!(stranger.join(&sent.invitation.unwrap()).is_err());
}

#[test]
fn restored_member_is_where_it_was_saved() {
    let mut world = World::formed();
    world.founder.save().unwrap();
    world.members[0].save().unwrap();
    let (epoch, secret) = (world.founder.epoch(), world.founder.secret().unwrap());
    let sent = world.founder.commit(CommitChanges::default()).unwrap();
    world.members[0].follow(&sent.commit).unwrap();
    let (mut founder, mut member) = (world.founder.restored().unwrap(), world.members[0].restored().unwrap());
    assert_eq!((founder.epoch(), founder.secret().unwrap()), (epoch, secret));
    let sent = founder.commit(CommitChanges { removed: &[3], ..CommitChanges::default() }).unwrap();
    assert!(member.follow(&sent.commit).unwrap());
    assert_eq!(founder.secret().unwrap(), member.secret().unwrap());
    assert_ne!(founder.secret().unwrap(), world.founder.secret().unwrap());
}

#[test]
fn warmed_group_agrees_after_every_event() {
    for count in [2, 3, 7, 8, 9] {
        let (mut founder, mut member) = warm_group("leader", &names(count), |_| true).unwrap().unwrap();
        assert_eq!(founder.members(), count + 1);
        assert_eq!(founder.secret().unwrap(), member.secret().unwrap());
        let removed = [if member.leaf() == 1 { 2 } else { 1 }];
        let newcomer = candidates("newcomer", 1).remove(0);
        let added = [newcomer.key_package()];
        for change in [
            CommitChanges::default(),
            CommitChanges { removed: &removed, added: &[] },
            CommitChanges { removed: &[], added: &added },
        ] {
            let sent = founder.commit(change).unwrap();
            assert!(member.follow(&sent.commit).unwrap());
            assert_eq!(founder.secret().unwrap(), member.secret().unwrap());
        }
    }
}

#[test]
fn warmed_tree_makes_an_update_logarithmic() {
    let update = |count: usize| {
        let (mut founder, _) = warm_group("leader", &names(count), |_| true).unwrap().unwrap();
        founder.commit(CommitChanges::default()).unwrap().commit.len()
    };
    // 16 and 32 leaves, all inner nodes filled: one more level, one more key and one more ciphertext.
    let (small, large) = (update(15), update(31));
    assert!(large > small && large - small < 150, "{small} and {large} bytes");
    let mut world = World::formed();
    let cold = world.founder.commit(CommitChanges::default()).unwrap().commit.len();
    assert!(cold > small, "{cold} and {small} bytes");
}

#[test]
fn warming_stops_when_told() {
    let mut asked = Vec::new();
    let stopped = warm_group("leader", &names(N), |members| {
        asked.push(members);
        members < 5
    });
    assert!(stopped.unwrap().is_none());
    assert_eq!(asked, [1, 3, 5]);
    assert!(matches!(warm_group("leader", &names(1), |_| true), Err(Error::TooFew)));
}
