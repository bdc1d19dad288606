"""The Compose file's profile `relays`: edges behind two relays of each leader, and what becomes of them when relays are lost."""

from concurrent.futures import ThreadPoolExecutor

from engine import eventually, step

# Relays by the leader that they serve.
RELAYS = {"leader-1": ["relay-1", "relay-2"], "leader-2": ["relay-3", "relay-4"]}
ALL = [relay for relays in RELAYS.values() for relay in relays]


class Tier:
    """The relays of the leader that leads, and the edges behind them."""

    def __init__(self, stack):
        self.stack = stack
        self.leader = stack.leader()
        self.killed, self.cut = RELAYS[self.leader]
        self.evicted = None
        with step("edges behind both relays of the leader, and one key"):
            self.serves_all()
            self.names = self.holds_one_key()

    def serves_all(self):
        """Both relays hold a connection of each edge behind them."""

        def look():
            status = self.stack.leads(self.leader)
            return status and status["relays"] == 2 and status["relayed"] == 2 * self.stack.relayed

        eventually(f"the relays of {self.leader} have {self.stack.relayed} edges each", look)

    def holds_one_key(self):
        """Every edge, behind relays or not, holds the key that the leader does; returns their names."""

        def one(container):
            status = self.stack.status(container, "edge")
            return status and status["synced"] and (status["name"], status["epoch_digest"])

        def look():
            with ThreadPoolExecutor(8) as pool:
                held = list(pool.map(one, self.stack.edges()))
            leads = self.stack.leads(self.leader)
            same = leads and all(held) and {digest for _, digest in held} == {leads["epoch_digest"]}
            return same and {name for name, _ in held}

        return eventually("one key everywhere", look)

    def ask_leader(self, *command):
        answer = self.stack.ask(self.stack.name(self.leader), "/bin/leader", *command)
        assert answer.returncode == 0, answer

    def one_is_killed(self, before):
        docker = self.stack.engine.docker
        docker("kill", self.stack.name(self.killed))
        self.ask_leader("rekey")
        with step("a relay killed: its edges go to the other, all have the next key"):
            epoch = self.stack.served(self.stack.number, before)
            assert self.holds_one_key() == self.names
        docker("start", self.stack.name(self.killed))
        with step("the relay is back, and has its edges again"):
            self.serves_all()
        return epoch

    def one_is_cut_off(self, before):
        """The other relay is cut off and an edge behind it evicted; the relay stays away."""
        stack = self.stack
        stack.engine.docker("network", "disconnect", "quiver_default", stack.name(self.cut))
        container = stack.edges()[-1]
        self.evicted = stack.status(container, "edge")["name"]
        self.ask_leader("evict", self.evicted)
        stack.number, stack.relayed = stack.number - 1, stack.relayed - 1
        with step("the other relay cut off: an edge behind it is evicted, the others have the next key"):
            epoch = stack.served(stack.number, before)
            stack.unready(container, "edge", "evicted from the group")
        stack.engine.docker("rm", "--force", "--volumes", container)
        assert self.holds_one_key() == self.names - {self.evicted}
        return epoch

    def says_that_it_is_cut_off(self):
        self.stack.unready(self.stack.name(self.cut), "edge", "no leader of the group serves this relay")

    def is_connected_again(self):
        name = self.stack.name(self.cut)
        self.stack.engine.docker("network", "connect", "--alias", self.cut, "quiver_default", name)

    def serves_again(self):
        self.stack.all_ready([self.stack.name(self.cut)], "edge")

    def is_whole(self):
        """Nobody is lost but who was evicted."""
        self.serves_all()
        assert self.holds_one_key() == self.names - {self.evicted}
