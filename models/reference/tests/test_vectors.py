"""The reference against the project's vectors, and against those of RFC 9496, RFC 7748 and Noise's building blocks."""

import json
import unittest
from pathlib import Path
from types import SimpleNamespace

from quiver_reference import datagram, ristretto, suite, tree, wire
from quiver_reference.header import LEADER_SLOT, ZERO, Header, completed
from quiver_reference.identity import Deployment, PublicKey
from quiver_reference.ristretto import BASE, ORDER, Refused
from quiver_reference.second_factor import SETS, Exchange

ROOT = Path(__file__).resolve().parents[3]
AINQ = ROOT / "core/ainq/tests/vectors"
KEM = ROOT / "core/kem/tests/vectors"
MESSAGES = ROOT / "proto/message/tests/snapshots"
DATAGRAMS = ROOT / "proto/datagram/tests/vectors/datagrams.txt"


class Ristretto(unittest.TestCase):
    def test_multiples_of_the_base_are_those_of_rfc_9496(self):
        multiples = {
            1: "e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76",
            2: "6a493210f7499cd17fecb510ae0cea23a110e8d5b901f8acadd3095c73a3b919",
            5: "e882b131016b52c1d3337080187cf768423efccbb517bb495ab812c4160ff44e",
            15: "e0c418f7c8d9c4cdd7395b93ea124f3ad99021bb681dfc3302a9d99a2e53e64e",
        }
        for scalar, encoded in multiples.items():
            self.assertEqual((scalar * BASE).encode().hex(), encoded)

    def test_bad_encodings_of_rfc_9496_are_refused(self):
        for encoded in (
            "00ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
            "f3ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "0100000000000000000000000000000000000000000000000000000000000000",
            "26948d35ca62e643e26a83177332e6b6afeb9d08e4268b650f1f5bbd8d81d371",
            "3eb858e78f5a7254d8c9731174a94f76755fd3941c0ac93735c07ba14579630e",
            "00" * 32,
        ):
            with self.assertRaises(Refused, msg=encoded):
                ristretto.decode(bytes.fromhex(encoded))

    def test_pairwise_secrets_are_those_of_both_sides(self):
        for case in json.loads((AINQ / "pairwise-secret.json").read_text()):
            y, e, l = (int.from_bytes(bytes.fromhex(case[name]), "little") for name in "yel")
            points = {name: ristretto.decode(bytes.fromhex(case[name])) for name in "YEV"}
            self.assertEqual([(k * BASE).encode().hex() for k in (y, e, l)], [case[name] for name in "YEV"])
            self.assertEqual(suite.agree(l, points["Y"] + points["E"]).hex(), case["T"])
            self.assertEqual(suite.agree((y + e) % ORDER, points["V"]).hex(), case["T"])


class Epoch:
    """What of a header the tree needs."""

    def __init__(self, epoch, digest=ZERO):
        self.d0, self.height, self.digest = bytes.fromhex(epoch["d0"]), epoch["height"], digest
        self.entries_root = bytes.fromhex(epoch["entries_root"])


class Tree(unittest.TestCase):
    """Every member of the history in tree.json, by the wraps of each epoch, whole and in parts."""

    def setUp(self):
        self.history = json.loads((AINQ / "tree.json").read_text())

    def check(self, epoch, slot, path, key):
        keys = {(one["level"], one["index"]): one["key"] for one in epoch["keys"]}
        expected = {level: keys[level, slot >> level] for level in range(1, epoch["height"] + 1)}
        self.assertEqual({level: value.hex() for level, value in path.keys.items()}, expected)
        self.assertEqual(key.hex(), epoch["group_key"])

    def live(self, part_of):
        """Lives through the history; `part_of` gives the wraps that the member of a slot receives."""
        opening, followed, out = self.history["opening"], 0, 0
        chains = {one["slot"]: bytes.fromhex(one["chain"]) for one in opening["members"]}
        paths = {}
        for slot, chain in chains.items():
            wraps = tree.Wraps(part_of(opening, slot))
            self.assertEqual(wraps.root().hex(), opening["entries_root"])
            paths[slot], key = tree.Path(slot, {}).follow(Epoch(opening), wraps, chain)
            self.check(opening, slot, paths[slot], key)
        for epoch in self.history["epochs"]:
            for slot in sorted(chains):
                chains[slot] = suite.prf(chains[slot], "step")
                wraps = tree.Wraps(part_of(epoch, slot))
                self.assertEqual(wraps.root().hex(), epoch["entries_root"])
                if slot in epoch["removed"]:
                    out += 1
                    with self.assertRaises(tree.Out):
                        paths[slot].follow(Epoch(epoch), wraps, chains[slot])
                    del chains[slot], paths[slot]
                    continue
                paths[slot], key = paths[slot].follow(Epoch(epoch), wraps, chains[slot])
                self.check(epoch, slot, paths[slot], key)
                followed += 1
            chains |= {one["slot"]: bytes.fromhex(one["chain"]) for one in epoch["added"]}
            for one in epoch["paths"]:
                header = Epoch(epoch, bytes.fromhex(one["digest"]))
                found, key, r = tree.open_path(header, one["slot"], chains[one["slot"]], bytes.fromhex(one["message"]))
                self.assertEqual(r.hex(), one["r"])
                self.check(epoch, one["slot"], found, key)
                paths[one["slot"]] = found
        self.assertGreater(followed, 30)
        self.assertGreater(out, 8)

    def test_members_follow_by_whole_wraps(self):
        self.live(lambda epoch, _: bytes.fromhex(epoch["delta"]))

    def test_members_follow_by_their_parts(self):
        def part(epoch, slot):
            return bytes.fromhex(next(one["branch"] for one in epoch["branches"] if one["slot"] == slot))

        self.live(part)

    def test_wraps_with_one_bit_changed_are_refused(self):
        """Each bit: either it is no encoding, or it has another root, by which a header refuses it."""
        epoch = self.history["epochs"][6]
        delta = bytes.fromhex(epoch["delta"])
        for place in range(8 * len(delta)):
            changed = bytearray(delta)
            changed[place // 8] ^= 1 << place % 8
            try:
                wraps = tree.Wraps(bytes(changed))
            except Refused:
                continue
            self.assertNotEqual(wraps.root().hex(), epoch["entries_root"], place)

    def test_paths_for_another_slot_or_under_another_key_are_refused(self):
        epoch = self.history["epochs"][2]
        one = epoch["paths"][0]
        header, message = Epoch(epoch, bytes.fromhex(one["digest"])), bytes.fromhex(one["message"])
        with self.assertRaises(Refused):
            tree.open_path(header, one["slot"] + 1, bytes(32), message)
        with self.assertRaises(Refused):
            tree.open_path(header, one["slot"], bytes(32), message)


class Datagrams(unittest.TestCase):
    KINDS = ["single", "batch", "signed-single", "signed-batch", "again", "signed-again", "manifest"]

    def lines(self, word):
        found = [line.split()[1:] for line in DATAGRAMS.read_text().splitlines() if line.split()[0] == word]
        self.assertTrue(found)
        return found

    def test_keys(self):
        for traffic, slot, boot_no, salt, key, announcement in self.lines("key"):
            found = datagram.keys(bytes.fromhex(traffic), int(slot), int(boot_no), bytes.fromhex(salt))
            self.assertEqual([one.hex() for one in found], [key, announcement])

    def test_payloads(self):
        for key, kind, counter, slot, number, body, sealed in self.lines("payloads"):
            made = datagram.seal(bytes.fromhex(key), self.KINDS.index(kind), int(counter), int(slot), int(number),
                                 bytes.fromhex(body))
            self.assertEqual(made.hex(), sealed)

    def test_announcements(self):
        for key, counter, slot, boot_no, salt, number, body, sealed in self.lines("announcement"):
            made = datagram.seal_announcement(bytes.fromhex(key), int(counter), int(slot), int(boot_no),
                                              bytes.fromhex(salt), int(number), bytes.fromhex(body))
            self.assertEqual(made.hex(), sealed)

    def test_hashes_in_manifests(self):
        for kind, number, body, digest in self.lines("hash"):
            self.assertEqual(datagram.manifest_hash(int(kind), int(number), bytes.fromhex(body)).hex(), digest)

    def test_slots_have_one_encoding(self):
        for slot in (0, 126, 127, 16_382, 16_383, LEADER_SLOT - 1, LEADER_SLOT):
            self.assertEqual(datagram.read_slot(suite.Reader(datagram.encode_slot(slot))), slot)
        for encoded in ("8000", "808000", "81808000", "ffff7f"):
            with self.assertRaises(Refused, msg=encoded):
                datagram.read_slot(suite.Reader(bytes.fromhex(encoded)))


class SecondFactor(unittest.TestCase):
    """§24: ML-KEM of given seeds, and κ from the exchange to the start of a chain."""

    def test_exchanges_of_ml_kem(self):
        vectors = json.loads((KEM / "ml_kem.json").read_text())
        self.assertEqual({one["set"] for one in vectors}, {"ml-kem-768", "ml-kem-1024"})
        for one in vectors:
            exchange = Exchange(bytes(32), SETS[one["set"]], bytes.fromhex(one["seed"]))
            self.assertEqual(exchange.key().hex(), one["key"])
            for ciphertext, secret in (("ciphertext", "shared"), ("altered", "rejected")):
                found = exchange.private().decapsulate(bytes.fromhex(one[ciphertext]))
                self.assertEqual(found.hex(), one[secret])

    def test_kappa_its_steps_its_tag_and_what_follows_from_it(self):
        for one in json.loads((AINQ / "kem.json").read_text()):
            leader, drone, g = bytes.fromhex(one["leader"]), bytes.fromhex(one["drone"]), one["terms"][0]["g"]
            deployment = Deployment(one["deployment"], bytes.fromhex(one["master"]), SETS[one["set"]])
            exchange = Exchange(leader, deployment.kem, bytes.fromhex(one["seed"]))
            ciphertext = bytes.fromhex(one["ciphertext"])
            self.assertEqual(exchange.private().decapsulate(ciphertext).hex(), one["shared"])
            exchange.take(deployment.fingerprint, one["group"], drone, {"set": deployment.kem, "g": g}, ciphertext, 0)
            (kappa,) = exchange.found.values()
            for term in one["terms"]:
                stepped = kappa.at(leader, term["g"])
                self.assertEqual((stepped.key.hex(), stepped.tag().hex()), (term["key"], term["tag"]))
                chain = stepped.start(bytes.fromhex(one["context"]), bytes.fromhex(one["secret"]))
                self.assertEqual((chain.hex(), suite.prf(chain, "auth").hex()), (term["chain"], term["auth"]))
            self.assertIsNone(kappa.at(leader, g - 1))
            self.assertIsNone(kappa.at(leader, g + 4097))
            self.assertIsNotNone(kappa.at(leader, g + 4096))


class Wire(unittest.TestCase):
    def test_a_message_is_read_as_it_was_written(self):
        message = {"q": 5, "point": b"p" * 32, "signature": b"s" * 64}
        self.assertEqual(wire.decode_fields(wire.SPARE, wire.encode_fields(wire.SPARE, message)), message)

    def test_recorded_messages_of_an_edge_are_read_and_written_byte_for_byte(self):
        """The snapshots of the Rust tests: of each message what it says, and its bytes again."""
        kinds = {}
        for path in sorted(MESSAGES.glob("encoding__*.snap")):
            encoded = bytes.fromhex("".join(path.read_text().split("---")[2].split()))
            # The recorded deployment's public key is not known, the start of its fingerprint is.
            deployment = SimpleNamespace(fingerprint=encoded[2:10])
            kind, fields = wire.decode(deployment, encoded)
            if kind is None:
                continue
            self.assertEqual(wire.encode(deployment, kind, fields), encoded, path.name)
            kinds.setdefault(kind, []).append((deployment, fields))
        self.assertEqual(set(kinds), {kind for kind, _ in wire.BODIES.values()})
        self.read_headers(kinds)
        self.complete_a_short_header(kinds)

    def complete_a_short_header(self, kinds):
        """§7.6: with the header of the welcome before it, it is the whole header of the same epoch."""
        ((_, short),), (_, welcome) = kinds["short_rekey"], kinds["welcome"][-1]
        (whole,) = [fields for _, fields in kinds["rekey"] if fields.get("delta") == short["delta"]]
        wraps, prev, before = tree.Wraps(short["delta"]), whole["header"]["prev"], welcome["header"]
        self.assertEqual(completed(before, prev, short, wraps), whole["header"])
        for other in ({"counter": short["counter"] + 1}, {"term": short["term"] + 1}, {"prev": bytes(8)}):
            self.assertIsNone(completed(before, prev, short | other, wraps))
        for name in ("roster_hash", "revocation_number"):
            with self.assertRaises(Refused):
                completed(before, prev, short | {name: before[name]}, wraps)

    def read_headers(self, kinds):
        """Headers, public keys and wraps within them have their form, too."""
        for deployment, fields in [one for kind in ("welcome", "rekey", "catch_up_reply") for one in kinds[kind]]:
            whole = SimpleNamespace(fingerprint=deployment.fingerprint + bytes(24))
            header = Header.from_wire(whole, fields["header"])
            self.assertEqual((header.group, header.leader.identity.ordinal), ("alpha", header.term & 0xFFFF))
            if "delta" in fields:
                self.assertEqual(tree.Wraps(fields["delta"]).root(), header.entries_root)
        for _, request in kinds["join_request"]:
            self.assertEqual(PublicKey.decode(request["drone"]).encode(), request["drone"])
        offers = [fields.get("kem", {}) for _, fields in kinds["join_request"]]
        self.assertEqual(sorted((bool(one.get("key")), bool(one.get("tag")), one.get("ahead", 0)) for one in offers),
                         [(False, False, 0), (False, True, 0), (True, False, 0), (True, False, 1)])

    def test_cut_messages_are_refused(self):
        encoded = wire.encode_fields(wire.SPARE, {"q": 300, "point": b"p" * 32})
        for length in range(1, len(encoded)):
            # A message may end between two fields.
            if length == 3:
                continue
            with self.assertRaises(Refused, msg=length):
                wire.decode_fields(wire.SPARE, encoded[:length])


if __name__ == "__main__":
    unittest.main()
