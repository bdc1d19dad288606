//! Groups of `openmls`, and of both libraries: the same events, the same keys.

use quiver_mls::openmls_member::{OpenMlsCandidate, OpenMlsMember, OpenMlsSuite};
use quiver_mls::provider::Provider;
use quiver_mls::{
    Candidate, CommitChanges, CommitMessages, Error, GroupCandidate, GroupMember, Invitation, MlsMember,
};

const SUITES: [OpenMlsSuite; 2] = [OpenMlsSuite::X25519, OpenMlsSuite::XWing];

fn candidates(what: &str, count: usize, suite: OpenMlsSuite) -> Vec<OpenMlsCandidate> {
    (0..count).map(|i| OpenMlsCandidate::new(&format!("{what}-{i}"), &suite).unwrap()).collect()
}

fn commit(founder: &mut impl GroupMember, removed: &[u32], added: &[&[u8]]) -> CommitMessages {
    founder.commit(CommitChanges { removed, added }).unwrap()
}

fn expect_agreement(founder: &impl GroupMember, members: &[impl GroupMember]) {
    for member in members {
        assert_eq!((member.epoch(), member.secret().unwrap()), (founder.epoch(), founder.secret().unwrap()));
    }
}

#[test]
fn all_members_agree_after_every_event_and_the_removed_do_not_follow() {
    for suite in SUITES {
        let mut founder = OpenMlsMember::found("leader", &suite).unwrap();
        let founders = candidates("drone", 8, suite);
        let packages: Vec<&[u8]> = founders.iter().map(GroupCandidate::key_package).collect();
        let invitation = commit(&mut founder, &[], &packages).invitation.unwrap();
        let mut members: Vec<OpenMlsMember> =
            founders.iter().map(|candidate| candidate.join(&invitation).unwrap()).collect();
        expect_agreement(&founder, &members);
        let mut secrets = vec![founder.secret().unwrap()];
        // Leaves 3 and 5 are free, then the newcomers take them, the leftmost first.
        for (removed, newcomers) in [(&[][..], 0), (&[3, 5], 0), (&[], 1), (&[], 2)] {
            let newcomers = candidates("newcomer", newcomers, suite);
            let packages: Vec<&[u8]> = newcomers.iter().map(GroupCandidate::key_package).collect();
            let sent = commit(&mut founder, removed, &packages);
            assert_eq!(sent.invitation.is_some(), !newcomers.is_empty());
            let mut gone = Vec::new();
            for leaf in removed.iter().rev() {
                gone.push(members.remove(*leaf as usize - 1));
            }
            members.iter_mut().for_each(|member| assert!(member.follow(&sent.commit).unwrap()));
            for member in &mut gone {
                assert!(!member.follow(&sent.commit).unwrap());
                assert!(member.secret().is_err());
            }
            if let Some(invitation) = &sent.invitation {
                members.extend(newcomers.iter().map(|newcomer| newcomer.join(invitation).unwrap()));
            }
            expect_agreement(&founder, &members);
            assert!(!secrets.contains(&founder.secret().unwrap()));
            secrets.push(founder.secret().unwrap());
        }
    }
}

#[test]
fn hybrid_suite_costs_a_ciphertext_of_ml_kem_for_each_member() {
    let update = |suite: OpenMlsSuite| {
        let mut founder = OpenMlsMember::found("leader", &suite).unwrap();
        let founders = candidates("drone", 8, suite);
        let packages: Vec<&[u8]> = founders.iter().map(GroupCandidate::key_package).collect();
        commit(&mut founder, &[], &packages);
        commit(&mut founder, &[], &[]).commit.len()
    };
    let [classical, hybrid] = SUITES.map(update);
    // To eight members, 1,088 bytes more each; and keys of the leaf and of four nodes, 1,184 bytes more each.
    let least = 8 * 1088 + 4 * 1184;
    assert!((least..least + 1500).contains(&(hybrid - classical)), "{classical} and {hybrid}");
}

#[test]
fn strangers_and_other_suites_cannot_join() {
    let mut founder = OpenMlsMember::found("leader", &OpenMlsSuite::X25519).unwrap();
    let drones = candidates("drone", 2, OpenMlsSuite::X25519);
    let invitation = commit(&mut founder, &[], &[drones[0].key_package()]).invitation.unwrap();
    assert!(drones[1].join(&invitation).is_err());
    let hybrid = candidates("drone", 1, OpenMlsSuite::XWing).remove(0);
    let (epoch, secret) = (founder.epoch(), founder.secret().unwrap());
    assert!(
        founder.commit(CommitChanges { added: &[hybrid.key_package()], ..CommitChanges::default() }).is_err()
    );
    assert!(
        founder.commit(CommitChanges { added: &[b"no key package"], ..CommitChanges::default() }).is_err()
    );
    assert!(founder.commit(CommitChanges { removed: &[77], ..CommitChanges::default() }).is_err());
    assert_eq!((founder.epoch(), founder.secret().unwrap()), (epoch, secret));
    let mut member = drones[0].join(&invitation).unwrap();
    assert!(matches!(member.follow(&invitation.welcome), Err(Error::OpenMls(_))));
    assert!(member.follow(&[]).is_err());
    expect_agreement(&founder, &[member]);
}

/// A group with a member of each library, under a founder of one of them.
fn mixed<F: GroupMember>(mut founder: F, first: &[u8], second: &[u8]) -> (F, Invitation) {
    let invitation = commit(&mut founder, &[], &[first, second]).invitation.unwrap();
    (founder, invitation)
}

#[test]
fn both_libraries_are_members_of_one_group() {
    let (suite, provider) = (OpenMlsSuite::X25519, Provider::default());
    let one = OpenMlsCandidate::new("one", &suite).unwrap();
    let other = Candidate::new("other", &provider).unwrap();
    let founder = OpenMlsMember::found("leader", &suite).unwrap();
    let (mut founder, invitation) = mixed(founder, one.key_package(), other.key_package());
    let (mut one, mut other) = (one.join(&invitation).unwrap(), other.join(&invitation).unwrap());
    assert_eq!(other.secret().unwrap(), founder.secret().unwrap());
    let sent = commit(&mut founder, &[], &[]);
    assert!(one.follow(&sent.commit).unwrap() && other.follow(&sent.commit).unwrap());
    assert_eq!(other.secret().unwrap(), founder.secret().unwrap());
    expect_agreement(&founder, &[one]);

    let one = OpenMlsCandidate::new("one", &suite).unwrap();
    let other = Candidate::new("other", &provider).unwrap();
    let founder = MlsMember::found("leader", &provider).unwrap();
    let (mut founder, invitation) = mixed(founder, one.key_package(), other.key_package());
    let (mut one, mut other) = (one.join(&invitation).unwrap(), other.join(&invitation).unwrap());
    let sent = commit(&mut founder, &[1], &[]);
    assert!(!one.follow(&sent.commit).unwrap() && other.follow(&sent.commit).unwrap());
    expect_agreement(&founder, &[other]);
}
