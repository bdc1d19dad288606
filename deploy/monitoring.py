"""The Compose file's Prometheus: whether it finds every service, and whether the alerts and the dashboard speak of metrics that there are."""

import json
import math
import re
import shutil
import subprocess
import urllib.parse
import urllib.request

from engine import HERE, eventually, libraries

PROGRAM = "prometheus"
IMAGE = "quiver-test/prometheus:test"
# Nobody, as in the image that the Compose file names.
USER = 65534
METRIC = re.compile(r"\bquiver_[a-z0-9_]+")
# What a family's name has behind it in a sample's.
SUFFIX = re.compile(r"_(total|bucket|count|sum)$")


def build(engine):
    """An image of the program installed here, laid out as the one that is pulled elsewhere."""
    root = engine.folder / "prometheus"
    program = shutil.which(PROGRAM)
    for file in [program, *libraries(program)]:
        place = root / ("bin/prometheus" if file == program else file.lstrip("/"))
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place)
    (root / "prometheus").mkdir()
    shutil.chown(root / "prometheus", USER, USER)
    changes = ['ENTRYPOINT ["/bin/prometheus"]', f"USER {USER}", "WORKDIR /prometheus"]
    archive = engine.folder / "prometheus.tar"
    subprocess.run(["tar", "-C", root, "-cf", archive, "."], check=True)
    engine.docker("import", *[word for change in changes for word in ["--change", change]], str(archive), IMAGE)


class Prometheus:
    """The one of the profile `monitoring`, running."""

    def __init__(self, stack):
        self.stack = stack
        stack.engine.compose("up", "-d", "--no-deps", "prometheus")
        self.address = stack.address(stack.name("prometheus"))

    def ask(self, path, **parameters):
        """What the interface answers, or none as long as it does not."""
        address = f"http://{self.address}:9090/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{address}: {error.read().decode()}") from error
        except OSError:
            return None

    def values(self, expression):
        return [float(sample["value"][1]) for sample in self.ask("query", query=expression)["result"]]

    def finds(self, **services):
        """Every instance of each service answers what it is asked."""

        def look():
            return all(self.values(f'sum(up{{job="{job}"}})') == [number] for job, number in services.items())

        eventually("Prometheus answers", lambda: self.ask("status/buildinfo"))
        eventually(f"Prometheus finds {services}", look)

    def knows(self, expressions):
        """Every metric in these expressions is one that a service has."""
        known = {SUFFIX.sub("", name) for name in self.ask("metadata")}
        for expression in expressions:
            missing = [name for name in METRIC.findall(expression) if SUFFIX.sub("", name) not in known]
            assert not missing, f"no service has {missing}, of which `{expression}` speaks"

    def evaluates_its_alerts(self):
        (group,) = eventually("the alerts were evaluated", self.evaluated)
        faults = {rule["name"]: rule["lastError"] for rule in group["rules"] if rule["health"] != "ok"}
        assert not faults, faults
        self.knows(rule["query"] for rule in group["rules"])

    def evaluated(self):
        groups = self.ask("rules")["groups"]
        return groups and all(rule["health"] != "unknown" for group in groups for rule in group["rules"]) and groups

    def draws_the_dashboard(self):
        """Each panel has an expression that is evaluated and speaks of what there is; the latencies are numbers."""
        dashboard = json.loads((HERE / "grafana/dashboards/quiver.json").read_text())
        drawn = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
        panels = {panel["title"]: [target["expr"] for target in panel["targets"]] for panel in drawn}
        for expressions in panels.values():
            self.knows(expressions)
        # Whatever has no labels of its own is there from the first.
        for title, expressions in panels.items():
            eventually(f"a figure in the panel {title}", lambda expressions=expressions: any(map(self.values, expressions)))
        quantiles = [expression for expressions in panels.values() for expression in expressions if "quantile" in expression]
        assert len(quantiles) == 4, "p50 and p99 of a re-key, and of a MAVLink frame"
        for expression in quantiles:
            eventually(f"a latency by {expression}", lambda expression=expression: any(map(math.isfinite, self.values(expression))))

    def raises(self, name):
        """The alert is pending at least: how long it must last is longer than a test."""
        eventually(f"the alert {name}", lambda: any(alert["labels"]["alertname"] == name for alert in self.ask("alerts")["alerts"]))

    def is_quiet(self):
        def loud():
            return [alert["labels"]["alertname"] for alert in self.ask("alerts")["alerts"] if alert["state"] == "firing"]

        eventually("no alert is raised", lambda: not loud())
