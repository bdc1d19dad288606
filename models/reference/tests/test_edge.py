"""What an edge must refuse, and what it must follow: headers, entries, messages, notices, lists, proofs."""

import unittest
from dataclasses import replace

from quiver_reference import libp2p, wire
from quiver_reference.edge import EVERYBODY, LEADER, Edge
from quiver_reference.header import LEADER_SLOT
from quiver_reference.ristretto import Refused
from quiver_reference.suite import lp, prf, u64

from .authority import GROUP, LATER, NOW, PEER, Group, Leader


def events(found):
    return [one["event"] for one in found]


class Headers(unittest.TestCase):
    """§7.3: each test alters one thing of an epoch that is followed otherwise."""

    def setUp(self):
        self.group = Group()

    def rekey(self, made, step=True, **more):
        return self.group.give("rekey", header=made.fields, entry=self.group.leader.entry(made, step=step), **more)

    def refused(self, found, reason):
        self.assertEqual([(one["event"], one["reason"]) for one in found], [("refused", reason)])
        self.assertEqual(self.group.edge.member.header.digest, self.group.made.header.digest)

    def test_an_epoch_is_followed_acknowledged_and_not_followed_again(self):
        group = self.group
        made = group.leader.finish(group.rekey())
        entry = group.leader.entry(made)
        group.edge.outbox = []
        self.assertEqual(events(group.give("rekey", header=made.fields, entry=entry)), ["epoch"])
        acks = group.sent("ack")
        self.assertEqual([one["tag"] for one in acks], [prf(group.leader.auth, "ack", made.header.digest)])
        self.assertEqual(group.edge.member.key, made.key)
        self.assertEqual(events(group.give("rekey", header=made.fields, entry=entry)), [])
        self.assertEqual(len(group.sent("ack")), 1, "its acknowledgement may have been lost")
        self.assertEqual(events(group.give("rekey", header=group.made.fields, entry=entry)), ["refused"])

    def test_only_an_epoch_above_the_newest_one_is_accepted(self):
        made = self.group.leader.finish(self.group.rekey())
        newest = {(1 << 16, 2): True, (1 << 16, 3): False, (1 << 16, 4): False, (2 << 16, 1): False, (0, 0): True}
        for epoch, newer in newest.items():
            verify = made.header.verify, self.group.kgc.deployment, GROUP, epoch, set(), NOW
            if newer:
                verify[0](*verify[1:])
            else:
                with self.assertRaisesRegex(Refused, "stale", msg=epoch):
                    verify[0](*verify[1:])

    def test_an_epoch_that_was_missed_is_jumped_over(self):
        group = self.group
        missed = group.leader.finish(group.rekey())
        group.leader.entry(missed)
        fields = group.leader.core(1 << 16, 4, missed.header.digest)
        self.assertEqual(events(self.rekey(group.leader.finish(fields))), ["epoch"])

    def test_a_wrong_signature_is_refused(self):
        made = self.group.leader.finish(self.group.rekey(), signer=Leader(self.group.kgc).keypair)
        self.refused(self.rekey(made), "leader-0 did not sign this (header)")

    def test_a_drone_that_is_no_leader_is_refused(self):
        for leader in (Leader(self.group.kgc, leads=None), Leader(self.group.kgc, leads="beta"),
                       Leader(self.group.kgc, ordinal=1)):
            leader.chain = self.group.leader.chain
            made = leader.finish(leader.core(1 << 16, 3, self.group.made.header.digest))
            self.refused(self.group.give("rekey", header=made.fields, entry=leader.entry(made)),
                         "the signer leads another group, or under another ordinal")

    def test_another_group_is_refused(self):
        made = self.group.leader.finish(self.group.rekey(group="beta"))
        self.refused(self.rekey(made), "another group")

    def test_an_epoch_whose_time_is_over_is_refused(self):
        made = self.group.leader.finish(self.group.rekey(valid_until=NOW + 1))
        self.refused(self.rekey(made, now=NOW + 1), "expired")

    def test_a_term_that_is_too_many_rounds_ahead_is_refused(self):
        made = self.group.leader.finish(self.group.leader.core((2 + (1 << 20)) << 16, 1))
        self.refused(self.rekey(made), "too many rounds ahead")

    def test_shapes_that_no_header_has_are_refused(self):
        for wrong in ({"kind": 1}, {"kind": 3}, {"strategy": 2}, {"strategy": 3}, {"height": 1}, {"counter": 1},
                      {"absent": bytes([5, 1])}, {"point": bytes(31) + b"\1"}, {"valid_until": NOW}, {"term": 1 << 63},
                      {"changes": bytes(32)}, {"entries_root": b"r" * 32}):
            made = self.group.leader.finish(self.group.rekey())
            made.fields |= wrong
            self.refused(self.group.give("rekey", header=made.fields), "a header's shape")

    def test_runs_of_slots_have_one_form(self):
        for runs in (bytes([0, 0]), bytes([0, 1, 0, 1]), bytes([0x80, 0, 1]), bytes([0])):
            made = self.group.leader.finish(self.group.rekey())
            made.fields["removed"] = runs
            self.assertEqual(events(self.group.give("rekey", header=made.fields)), ["refused"], runs)

    def test_a_key_that_does_not_fit_the_tag_is_refused(self):
        made = self.group.leader.finish(self.group.rekey(), tag=bytes(31) + b"\1")
        self.refused(self.rekey(made), "the key does not fit the header's tag")

    def test_another_slots_entry_is_refused_and_asked_about(self):
        group = self.group
        made = group.leader.finish(group.rekey())
        entry = group.leader.entry(made) | {"slot": 1}
        group.edge.question = None
        group.edge.outbox = []
        self.refused(group.give("rekey", header=made.fields, entry=entry), "another slot's entry")
        self.assertEqual(len(group.sent("catch_up_request")), 1)

    def test_a_header_that_removes_the_member_ends_the_membership_and_erases_its_pairs(self):
        made = self.group.leader.finish(self.group.rekey(removed=bytes([0, 1])))
        self.assertEqual(events(self.group.give("rekey", header=made.fields)), ["out"])
        self.assertIsNone(self.group.edge.member)
        self.assertEqual((self.group.edge.state["pairs"], "membership" in self.group.edge.state), ([], False))

    def test_a_former_epochs_header_removes_nobody_later(self):
        old = self.group.leader.finish(self.group.rekey(removed=bytes([0, 1])))
        old.fields["counter"] = 2
        self.assertEqual(events(self.group.give("rekey", header=old.fields)), ["refused"])
        self.assertIsNotNone(self.group.edge.member)


class Terms(unittest.TestCase):
    def setUp(self):
        self.group = Group()

    def open(self, leader, term, pair):
        """A term that a leader opens with the member's spare point."""
        return leader.open(term, self.group.drone.public, pair.q, pair.point)

    def test_a_term_is_followed_with_the_spare_point_and_a_new_one_is_published(self):
        group, (pair,) = self.group, self.group.edge.pairs
        made = self.open(group.leader, 2 << 16, pair)
        group.edge.outbox = []
        entry = group.leader.entry(made, pair.q)
        self.assertEqual(events(group.give("rekey", header=made.fields, entry=entry)), ["epoch"])
        spare = group.sent("spare_publication")[0]["spare"]
        self.assertEqual(spare["q"], pair.q + 1)
        self.assertEqual([one.q for one in group.edge.pairs], [pair.q, pair.q + 1], "e_q stays until then")
        group.give("spare_ack", q=spare["q"], tag=bytes(32))
        self.assertEqual(len(group.edge.pairs), 2)
        tag = prf(group.leader.auth, "spare ack", u64(spare["q"]))
        self.assertEqual(events(group.give("spare_ack", q=spare["q"], tag=tag)), ["spare acknowledged"])
        self.assertEqual([one.q for one in group.edge.pairs], [pair.q + 1])

    def test_of_two_openings_with_one_point_the_higher_can_still_be_followed(self):
        group, (pair,) = self.group, self.group.edge.pairs
        for leader, term in ((group.leader, 2 << 16), (Leader(group.kgc, "leader-1", 1), (2 << 16) + 1)):
            made = self.open(leader, term, pair)
            entry = leader.entry(made, pair.q)
            self.assertEqual(events(group.give("rekey", header=made.fields, entry=entry)), ["epoch"])

    def test_a_used_point_is_erased_after_a_minute(self):
        group, (pair,) = self.group, self.group.edge.pairs
        made = self.open(group.leader, 2 << 16, pair)
        group.give("rekey", header=made.fields, entry=group.leader.entry(made, pair.q))
        group.edge.tick(NOW + 61)
        self.assertEqual([one.q for one in group.edge.pairs], [pair.q + 1])

    def test_an_entry_for_a_point_that_is_not_there_changes_nothing_and_makes_the_edge_ask(self):
        group, (pair,) = self.group, self.group.edge.pairs
        made = self.open(group.leader, 2 << 16, pair)
        group.edge.question, group.edge.outbox = None, []
        found = group.give("rekey", header=made.fields, entry=group.leader.entry(made, pair.q + 1))
        self.assertEqual(events(found), ["refused"])
        self.assertEqual((group.edge.member.header.digest, len(group.sent("catch_up_request"))),
                         (group.made.header.digest, 1))


class SecondFactor(unittest.TestCase):
    """§24."""

    def setUp(self):
        self.group = Group(kem=1)
        self.leader = self.group.leader.keypair.public.handle()

    def rejoin(self, leader=None, **more):
        """The request of an edge that is no member any more, and asks the leader once more."""
        group = self.group
        group.edge.end("rejoin")
        group.edge.joining, group.edge.outbox = None, []
        group.edge.tick(NOW)
        return group.challenge(leader, **more)

    def test_both_sets_make_a_pair_and_the_secret_is_stored_with_the_membership(self):
        for kem in (1, 2):
            group = Group(kem)
            handle = group.leader.keypair.public.handle()
            self.assertEqual(group.edge.kappas, {handle: group.leader.kappa})
            again = Edge(group.kgc.deployment, GROUP, state=group.edge.state)
            self.assertEqual((again.kappas, again.member.slot), (group.edge.kappas, 0))

    def test_a_forged_ciphertext_that_comes_first_keeps_nobody_out(self):
        group, take = self.group, self.group.give
        hello, request = self.rejoin(kem={"set": 1, "g": 9000})
        drone, term = group.drone.public.handle(), {"set": 1, "g": group.leader.terms}
        forged = [group.leader.encapsulate(request["kem"]["key"], drone)[0] for _ in range(3)]
        right, group.leader.kappa = group.leader.encapsulate(request["kem"]["key"], drone)
        for one in forged[:3] + [forged[0], right]:
            self.assertEqual(take("join_ciphertext", nonce=hello["nonce"], term=term, ciphertext=one), [])
        # The fifth is one too many; of another connection or another nonce none counts.
        late, _ = group.leader.encapsulate(request["kem"]["key"], drone)
        take("join_ciphertext", nonce=hello["nonce"], term=term, ciphertext=late)
        self.assertEqual(list(group.edge.joining["exchange"].found), [*forged, right])
        for other in ({"set": 2, "g": 1}, {"set": 1, "g": 0}, {"set": 1, "g": (1 << 48) + 1}):
            found = take("join_ciphertext", nonce=hello["nonce"], term=other, ciphertext=late)
            self.assertEqual(events(found), ["refused"], other)
        fields = group.leader.core(1 << 16, 3, group.made.header.digest, added=bytes([0, 1]))
        group.leader.pair_up(fields, group.drone.public, 0, request["ephemeral"])
        made = group.leader.finish(fields)
        found = take("welcome", nonce=hello["nonce"], header=fields, entry=group.leader.entry(made))
        self.assertEqual([one.get("second_factor") for one in found], [None, "exchange"])
        self.assertEqual(group.edge.kappas[self.leader].key, group.leader.kappa.key)

    def test_who_has_the_secret_names_it_and_makes_another_when_it_is_old_too_far_or_lost(self):
        held = self.group.leader.kappa
        for g, named in ((1, True), (7, True), (4097, True), (4098, False), (0, False)):
            _, request = self.rejoin(kem={"set": 1, "g": g})
            kem = request["kem"]
            self.assertEqual((kem["tag"] != b"", kem["key"] == b""), (named, named), g)
            if named:
                self.assertEqual((kem["g"], kem["tag"]), (g, held.at(self.leader, g).tag()))
                message = lp(GROUP.encode()) + lp(self.group.leader.keypair.public.encode())
                message += lp(self.group.drone.public.encode()) + bytes(40) + request["nonce"] + request["ephemeral"]
                message += u64(request["spare"]["q"]) + request["spare"]["point"]
                message += lp(request["spare"]["signature"]) + bytes([1, 2]) + u64(g) + kem["tag"]
                self.group.drone.public.verify(self.group.kgc.deployment, "join", message, request["signature"])
        self.group.edge.kappas[self.leader] = replace(held, made=NOW - 30 * 86_400)
        self.assertTrue(self.rejoin()[1]["kem"]["key"])
        self.group.edge.kappas[self.leader] = held
        # §24.5: a refusal is not signed, so κ stays; of another request it says nothing.
        nonce = self.rejoin()[1]["nonce"]
        for reference, anew in ((bytes(16), False), (nonce, True)):
            self.group.give("refusal", reason=26, reference=reference, retry_after_ms=0)
            self.assertEqual((self.group.edge.renews, self.group.edge.kappas), (anew, {self.leader: held}))
        self.assertTrue(self.rejoin()[1]["kem"]["key"])

    def test_a_term_is_followed_with_the_secret_stepped_and_the_former_one_is_gone(self):
        group, (pair,), before = self.group, self.group.edge.pairs, self.group.leader.kappa
        made = group.leader.open(2 << 16, group.drone.public, pair.q, pair.point)
        found = group.give("rekey", header=made.fields, entry=group.leader.entry(made, pair.q))
        self.assertEqual(events(found), ["epoch"])
        self.assertEqual(group.edge.kappas[self.leader], group.leader.kappa)
        self.assertNotIn(before.key.hex(), str(group.edge.state))

    def test_an_opening_to_which_no_secret_leads_makes_the_member_join_again(self):
        for terms, shown in ((4100, False), (0, True)):
            self.group = group = Group(kem=1)
            group.edge.kappas[group.leader.keypair.public.handle()] = replace(group.leader.kappa, g=3)
            group.leader.terms, (pair,) = terms, group.edge.pairs
            made = group.leader.open(2 << 16, group.drone.public, pair.q, pair.point)
            group.edge.outbox = []
            found = group.give("rekey", header=made.fields, entry=group.leader.entry(made, pair.q))
            self.assertEqual([(one["event"], one.get("why")) for one in found], [("out", "rejoin")])
            self.assertEqual([one["kem_terms"] for one in (two["header"] for two in group.sent("rekey"))],
                             [1] if shown else [], "§24.7: a leader that was put back is shown what it signed")

    def test_no_header_of_another_set_is_followed_whoever_signed_it(self):
        for kem in ({"kem": 0, "kem_terms": 0}, {"kem": 2}):
            made = self.group.leader.finish(self.group.rekey(**kem))
            found = self.group.give("rekey", header=made.fields, entry=self.group.leader.entry(made, step=False))
            self.assertEqual([one["reason"] for one in found], ["another second factor than the deployment says"])
        for kem in ({"kem": 3}, {"kem_terms": 0}, {"kem_terms": (1 << 48) + 1}, {"kem": 0}):
            fields = self.group.rekey() | kem
            found = self.group.give("rekey", header=fields)
            self.assertEqual([one["reason"] for one in found], ["a header's second factor"])

    def test_a_leader_of_another_set_is_asked_for_nothing_and_both_settings_are_told(self):
        for more in ({"kem": {"set": 2, "g": 1}}, {"kem": {}}):
            _, request = self.rejoin(**more)
            self.assertIsNone(request)
            self.assertEqual(events(self.group.edge.events), ["another second factor"])

    def test_a_membership_of_another_set_than_the_deployment_says_ends_at_the_start(self):
        deployment = replace(self.group.kgc.deployment, kem=2)
        edge = Edge(deployment, GROUP, state=self.group.edge.state)
        self.assertEqual((edge.member, edge.kappas, edge.pairs), (None, {}, []))

    def test_a_member_makes_a_secret_with_a_leader_that_does_not_lead_and_follows_its_term(self):
        group, (pair,), other = self.group, self.group.edge.pairs, Leader(self.group.kgc, "leader-1", 1)
        group.edge.outbox = []
        group.edge.tick(NOW + 10)
        hello, request = group.challenge(other)
        kem = request["kem"]
        self.assertEqual((hello["kem"], kem["ahead"], kem["set"], kem["tag"]), (1, 1, 1, b""))
        self.assertEqual((request["spare"]["q"], request["spare"]["point"]), (pair.q, pair.point))
        message = lp(GROUP.encode()) + lp(other.keypair.public.encode()) + lp(group.drone.public.encode()) + bytes(40)
        message += hello["nonce"] + request["ephemeral"] + u64(pair.q) + pair.point + lp(request["spare"]["signature"])
        message += bytes([1, 3]) + lp(kem["key"])
        group.drone.public.verify(group.kgc.deployment, "join", message, request["signature"])
        ciphertext, kappa = other.encapsulate(kem["key"], group.drone.public.handle())
        found = group.give("join_ciphertext", nonce=hello["nonce"], term={"set": 1, "g": 1}, ciphertext=ciphertext)
        self.assertEqual(events(found), ["second factor"])
        self.assertEqual(group.edge.kappas, {self.leader: group.leader.kappa, other.keypair.public.handle(): kappa})
        # Its first term takes κ as it is: it opened none before.
        other.kappa, other.terms = kappa, 0
        made = other.open((2 << 16) + 1, group.drone.public, pair.q, pair.point)
        self.assertEqual(made.header.kem_terms, 1)

    def test_a_leader_that_does_not_answer_is_asked_five_times(self):
        group, hellos = self.group, 0
        group.edge.outbox = []
        for second in range(600):
            group.edge.tick(NOW + second)
            hellos += len(group.sent("join_hello"))
        self.assertEqual(hellos, 5)


class Restarts(unittest.TestCase):
    def setUp(self):
        self.group = Group()
        self.group.edge = Edge(self.group.kgc.deployment, GROUP, state=self.group.edge.state)
        self.group.edge.connected(PEER, LEADER, NOW)

    def test_an_edge_is_not_in_step_after_a_restart_and_says_what_it_lost(self):
        self.assertFalse(self.group.edge.can_send())
        self.assertEqual(self.group.edge.state["boot_no"], 2)
        question = self.group.sent("catch_up_request")[0]
        self.assertEqual(question["number"][:4], bytes([0, 0, 0, 2]))
        self.assertEqual(question["number"][7] & 3, 3, "K_g is lost")
        self.assertEqual(question["tag"], prf(self.group.leader.auth, "catch-up", question["number"], question["held"]))

    def test_only_an_answer_to_its_own_question_brings_it_into_step(self):
        group = self.group
        number = group.sent("catch_up_request")[0]["number"]
        held = group.made.header.digest
        wrong = [(number, bytes(32)), (bytes(16), prf(group.leader.auth, "fresh", held, bytes(16))),
                 (number, prf(group.leader.auth, "fresh", bytes(32), number))]
        for named, tag in wrong:
            group.give("catch_up_reply", number=named, header=group.made.fields, tag=tag)
            self.assertFalse(group.edge.synced)
        tag = prf(group.leader.auth, "fresh", held, number)
        found = group.give("catch_up_reply", number=number, header=group.made.fields, tag=tag)
        self.assertEqual(events(found), ["synced"])
        self.assertFalse(group.edge.can_send(), "K_g of that epoch is not taken back")
        made = group.leader.finish(group.rekey())
        self.assertEqual(events(group.give("rekey", header=made.fields, entry=group.leader.entry(made))), ["epoch"])
        self.assertTrue(group.edge.can_send())


class Messages(unittest.TestCase):
    """§13.4."""

    def setUp(self):
        self.group = Group()
        self.message = self.group.leader.say(self.group.made, b"go north")

    def test_a_message_is_received_once(self):
        found = self.group.give("group_message", **self.message)
        said = [(one["event"], one["text"], one["signer"]) for one in found]
        self.assertEqual(said, [("message", b"go north", "leader-0")])
        found = self.group.give("group_message", **self.message)
        self.assertEqual([one["reason"] for one in found], ["replayed, or too old"])

    def test_a_signature_that_is_cut_off_is_missed(self):
        del self.message["source"]
        self.assertEqual(events(self.group.give("group_message", **self.message)), ["refused"])

    def test_a_members_signature_cannot_be_cut_off_either(self):
        message = self.group.leader.say(self.group.made, b"here", keypair=self.group.kgc.enrol("edge-2"), slot=3)
        unsigned = {name: value for name, value in message.items() if name != "source"}
        found = self.group.give("group_message", **unsigned)
        self.assertEqual([one.get("reason") for one in found], ["the ciphertext does not open"])
        found = self.group.give("group_message", **message)
        self.assertEqual([one["signer"] for one in found], ["edge-2"])

    def test_the_leaders_slot_takes_no_other_signature_and_no_other_slot_the_leaders(self):
        other = self.group.kgc.enrol("edge-2")
        for keypair, slot in ((other, LEADER_SLOT), (self.group.leader.keypair, 3)):
            message = self.group.leader.say(self.group.made, b"go south", keypair=keypair, slot=slot)
            found = self.group.give("group_message", **message)
            self.assertEqual([one["reason"] for one in found],
                             ["the leader's slot, and no other, goes with the leader's signature"])

    def test_a_start_before_the_newest_one_is_not_heard(self):
        self.group.give("group_message", **self.message)
        other = self.group.leader.say(self.group.made, b"go south")
        found = self.group.give("group_message", **other)
        self.assertEqual(events(found), ["refused"], "the same number, another salt")

    def test_no_message_is_sent_or_opened_when_the_keys_time_is_over(self):
        self.assertEqual(events(self.group.give("group_message", now=LATER, **self.message)), [])
        with self.assertRaises(Refused):
            self.group.edge.say(LATER, "chat", b"late")

    def test_messages_under_the_former_key_are_received_for_two_seconds_if_nobody_was_removed(self):
        group = self.group
        made = group.leader.finish(group.rekey())
        group.give("rekey", header=made.fields, entry=group.leader.entry(made))
        second = dict(self.message)
        self.assertEqual(events(group.give("group_message", now=NOW + 1, **self.message)), ["message"])
        self.assertEqual(events(group.give("group_message", now=NOW + 3, **second)), [])

    def test_messages_under_the_former_key_are_not_received_after_a_removal(self):
        group = self.group
        made = group.leader.finish(group.rekey(removed=bytes([5, 1])))
        group.give("rekey", header=made.fields, entry=group.leader.entry(made))
        self.assertEqual(events(group.give("group_message", now=NOW + 1, **self.message)), [])

    def test_what_an_edge_sends_opens_at_the_leader(self):
        group = self.group
        group.edge.outbox = []
        group.edge.say(NOW, "chat", b"here")
        self.assertEqual([peer for peer, _ in group.edge.outbox], [EVERYBODY])
        (message,) = group.sent("group_message")
        self.assertEqual((message["slot"], message["number"], "source" in message), (0, 0, True))


class Removals(unittest.TestCase):
    """§12, §10.7."""

    def setUp(self):
        self.group = Group()
        self.serial = self.group.drone.public.identity.serial

    def notice(self, signer, counter, serials, group=GROUP):
        message = lp(group.encode()) + u64(1 << 16) + u64(counter) + serials
        signature = signer.sign(self.group.kgc.deployment, "evict", message)
        return self.group.give("eviction_notice", by_gossip=True, group=group, leader=signer.public.encode(),
                               term=1 << 16, counter=counter, serials=serials, signature=signature)

    def test_a_notice_evicts_whom_it_names(self):
        leader = self.group.leader.keypair
        self.assertEqual(self.notice(leader, 3, bytes(16)), [])
        self.assertEqual(events(self.notice(leader, 2, self.serial)), ["refused"], "of the epoch that is held")
        self.assertEqual(events(self.notice(Leader(self.group.kgc, ordinal=1).keypair, 3, self.serial)), ["refused"])
        self.assertEqual(events(self.notice(self.group.drone, 3, self.serial)), ["refused"])
        self.assertEqual(events(self.notice(leader, 3, bytes(16) + self.serial)), ["out"])
        self.assertFalse(self.group.edge.wants_in)

    def test_a_list_that_names_the_edge_ends_everything(self):
        encoded = self.group.kgc.revocations(5, edges=[self.serial])
        altered = bytearray(encoded)
        altered[-1] ^= 1
        self.assertEqual(events(self.group.give("revocation_list", list=bytes(altered))), ["refused"])
        head = bytearray(encoded)
        head[11] ^= 1
        self.assertEqual(events(self.group.give("revocation_list", list=bytes(head))), ["refused"])
        self.assertEqual(events(self.group.give("revocation_list", list=encoded)), ["revocation list", "out"])
        self.group.edge.outbox = []
        self.group.edge.tick(NOW + 100)
        self.assertEqual(self.group.edge.outbox, [], "it asks nobody for admission any more")

    def test_lists_go_by_their_number(self):
        self.group.give("revocation_list", list=self.group.kgc.revocations(5))
        older = self.group.kgc.revocations(4, edges=[self.serial])
        self.assertEqual(events(self.group.give("revocation_list", list=older)), [])
        self.assertIsNotNone(self.group.edge.member)

    def test_a_revoked_leader_is_not_followed(self):
        leader = self.group.leader.keypair.public.identity.serial
        found = self.group.give("revocation_list", list=self.group.kgc.revocations(6, leaders=[leader]))
        self.assertEqual(events(found), ["revocation list", "out"])
        self.assertTrue(self.group.edge.wants_in)

    def test_two_headers_of_one_epoch_are_proof_and_the_leader_is_refused_for_good(self):
        group = self.group
        fields = group.leader.core(1 << 16, 2, added=bytes([0, 1]), point=group.made.fields["point"])
        other = group.leader.finish(fields)
        false = other.fields | {"signature": group.made.fields["signature"]}
        for second in (group.made.fields, false):
            found = group.give("equivocation_proof", first=group.made.fields, second=second)
            self.assertEqual(events(found), ["refused"])
        group.edge.outbox = []
        self.assertEqual(events(group.give("rekey", header=other.fields)), ["refuses a leader"])
        self.assertEqual(len(group.sent("equivocation_proof")), 2, "to the group, and to the leader")
        self.assertFalse(group.edge.can_send())
        made = group.leader.finish(group.rekey())
        self.assertEqual(events(group.give("rekey", header=made.fields, entry=group.leader.entry(made))), ["refused"])
        again = Edge(group.kgc.deployment, GROUP, state=group.edge.state)
        self.assertEqual(again.refused, {group.leader.keypair.public.identity.serial})


class Strangers(unittest.TestCase):
    def test_messages_of_another_deployment_or_in_another_encoding_are_refused(self):
        group = Group()
        message = wire.encode(group.kgc.deployment, "spare_ack", {"q": 1, "tag": bytes(32)})
        # Key and length of the body are the bytes 10 to 12, then comes q: 8, 1.
        self.assertEqual(message[10:15], bytes([0x82, 1, 36, 8, 1]))
        longer = message[:12] + bytes([37, 8, 0x81, 0]) + message[15:]
        for altered in (message[:2] + bytes(8) + message[10:], message + bytes([0xA0, 6, 1]),
                        message[:10] + message[10:] * 2, longer, b"", message[:-1], bytes(40)):
            group.edge.events = []
            group.edge.receive(NOW, PEER, altered)
            self.assertEqual(events(group.edge.events), ["refused"], altered)

    def test_addresses(self):
        self.assertEqual(libp2p.multiaddr("/ip4/127.0.0.1/tcp/7001"), ("127.0.0.1", 7001, None))
        self.assertEqual(libp2p.multiaddr("/ip4/127.0.0.1/tcp/7001/p2p/12D3")[2], "12D3")
        with self.assertRaises(Refused):
            libp2p.multiaddr("/ip4/127.0.0.1/udp/7001/quic-v1")


if __name__ == "__main__":
    unittest.main()
