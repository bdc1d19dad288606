"""Opens the pages that the simulator writes in a headless browser: `pages.py FOLDER_OF_PROGRAMS [--pictures]`.

What a page shows is compared with what the example `states` and `sim … --json` say, which have no page.
"""

import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

from PIL import Image
from playwright.sync_api import sync_playwright

PROGRAMS = pathlib.Path(sys.argv[1])
DOCS = pathlib.Path(__file__).parents[2] / "docs"
# Scenarios, with the seconds at which drone by drone is compared.
SCENARIOS = {
    "drones_flying_out_of_range": [0.5, 5, 50.03, 125.2, 130.1, 250, 330],
    "leader_lost_for_good": [1, 22, 60.3, 75.5, 82, 139.9, 200.5, 290],
    "captured_drone_keeps_listening": [3, 30, 80.02, 81, 100.01, 179],
    "flapping_drone": [30.5, 37.5, 75, 111.2, 170],
}
FAILING = """
title = "Nobody leaves"
about = "One more is expected than there are."
duration = "20s"
settle = "5s"
[fleet]
members = 3
[expect]
members = 4
"""


def run(*words, code=0):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert done.returncode == code, (words, done.returncode, done.stderr)
    return done.stdout


def sim(*words, code=0):
    return run(PROGRAMS / "sim", *words, code=code)


class Browser:
    """Opens pages, and notes everything that a page complains of or fetches."""

    def __init__(self, chromium, folder):
        self.chromium, self.folder, self.complaints = chromium, folder, []

    def open(self, name, **options):
        page = self.chromium.new_page(viewport={"width": 1180, "height": 860}, **options)
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("requestfailed", lambda request: self.complaints.append(request.url))
        address = (self.folder / name).as_uri()
        page.on("request", lambda request: request.url == address or self.complaints.append(request.url))
        page.goto(address)
        return page

    def check(self):
        assert not self.complaints, self.complaints


def expected(name, times):
    """State and epoch of every drone at these times, by the world's own word."""
    states = {time: {} for time in times}
    for line in run(PROGRAMS / "examples" / "states", name, *times).splitlines():
        time, drone, state, epoch = line.split()
        states[float(time)][drone] = (state, None if epoch == "-" else epoch)
    return states


def shows_what_happened(browser, name, times):
    summary = json.loads(sim("scenario", name, "--suite", "toy", "--no-results", "--json", "--replay", browser.folder / f"{name}.html"))
    page = browser.open(f"{name}.html")
    for time, drones in expected(name, times).items():
        page.evaluate("time => quiver.seek(time)", time * 1e6)
        shown = page.evaluate("quiver.shown()")
        assert shown["time"] == time * 1e6
        for drone, said in drones.items():
            assert (shown["drones"][drone]["state"], shown["drones"][drone]["epoch"]) == said, (name, time, drone, said, shown["drones"][drone])
        for state in ["current", "behind", "out", "captured", "down"]:
            count = sum(said[0] == state for said in drones.values())
            assert page.locator(f"#count-{state}").inner_text() == str(count), (name, time, state, count)
    # To the end, by the keyboard, as fast as it can.
    page.keyboard.press("Home")
    page.evaluate("quiver.speed = 100")
    page.keyboard.press("Space")
    page.wait_for_function("quiver.time === quiver.end && !quiver.playing", timeout=120_000)
    shown = page.evaluate("quiver.shown()")
    current = [drone for drone, said in shown["drones"].items() if said["epoch"] and said["epoch"] == shown["newest"]]
    assert len(current) == summary["members"], (name, len(current), summary["members"])
    assert page.evaluate("quiver.end") == round(summary["virtual_s"] * 1e6), name
    page.close()
    browser.check()
    print(f"{name}: {len(times)} times of {len(shown['drones'])} drones are as the world says, and it plays to the end")


def leaders_are_shown(browser):
    page = browser.open("leader_lost_for_good.html")
    at = lambda time: page.evaluate("time => (({ leader, deputies }) => ({ leader, deputies }))(quiver.stateAt(time * 1e6))", time)
    assert at(50) == {"leader": "leader-0", "deputies": ["leader-1", "leader-2"]}, at(50)
    assert at(75) == {"leader": None, "deputies": ["leader-1", "leader-2"]}, at(75)
    assert at(100) == {"leader": "leader-1", "deputies": ["leader-2"]}, at(100)
    page.evaluate("quiver.seek(100e6)")
    assert "leader-1 leads\nleader-2 stands by" in page.locator("#reign").inner_text()
    page.close()
    browser.check()


def clicks_tell_stories(browser):
    page = browser.open("captured_drone_keeps_listening.html")
    page.evaluate("quiver.seek(60e6)")
    x, y = page.evaluate("quiver.where('edge-7')")
    page.locator("#map").click(position={"x": x, "y": y})
    story = page.locator("#story").inner_text
    assert page.locator("#who option:checked").inner_text() == "edge-7"
    assert "the adversary captures edge-7" in story() and "evicted" not in story(), story()
    page.evaluate("quiver.seek(120e6)")
    assert "is evicted" in story(), story()
    # A line of the story leads to its time.
    page.locator("#story button", has_text="the adversary captures").click()
    assert page.evaluate("quiver.time") == 30e6 and "is evicted" not in story()
    # So does the list, without a mouse.
    page.locator("#who").select_option(label="edge-3")
    assert "edge-3" in page.locator("#who option:checked").inner_text() and "is enrolled" in story()
    page.close()
    browser.check()


def keys_work(browser):
    page = browser.open("flapping_drone.html")
    time = lambda: page.evaluate("quiver.time")
    press = page.keyboard.press
    visited = []
    for _ in range(6):
        press("ArrowRight")
        visited.append(time())
    assert visited == sorted(set(visited)) and 30e6 in visited, visited
    press("ArrowLeft")
    assert time() == visited[-2]
    speed = page.evaluate("quiver.speed")
    press("ArrowUp")
    assert page.evaluate("quiver.speed") > speed
    press("ArrowDown")
    assert page.evaluate("quiver.speed") == speed
    press("Space")
    assert page.evaluate("quiver.playing")
    page.wait_for_function("from => quiver.time > from", arg=time())
    press("Space")
    assert not page.evaluate("quiver.playing")
    press("End")
    assert time() == page.evaluate("quiver.end")
    press("Home")
    assert time() == 0
    # The buttons are reached with Tab, and do the same.
    page.locator("#next").focus()
    press("Enter")
    assert time() > 0
    page.close()
    browser.check()


def cut_files_say_so(browser):
    whole = (browser.folder / "flapping_drone.html").read_bytes()
    data = whole.index(b'id="trace"')
    style = whole.index(b"<style>")
    script = whole.index(b"<script>")
    cuts = {"style": style + 50, "script": script + 2000, "start": data + 40, "half": (data + len(whole)) // 2}
    cuts |= {"mark": whole.rindex(b"data-length") + 13, "before mark": whole.rindex(b"<p")}
    files = {name: whole[:at] for name, at in cuts.items()}
    files["hole"] = whole[: data + 2000] + whole[data + 2010 :]
    for name, content in files.items():
        (browser.folder / "cut.html").write_bytes(content)
        page = browser.open("cut.html")
        notice = page.locator("#notice")
        assert notice.is_visible(), name
        text = notice.inner_text()
        assert "cut short" in text or "damaged" in text, (name, text)
        assert "sim scenario flapping_drone" in text, (name, text)
        assert not page.locator("#player").is_visible(), name
        page.close()
    browser.check()
    print(f"{len(files)} damaged files say so")


def failures_are_shown(browser):
    (browser.folder / "failing.toml").write_text(FAILING)
    page = browser.folder / "failing.html"
    sim("scenario", browser.folder / "failing.toml", "--suite", "toy", "--no-results", "--quiet", "--replay", page, code=1)
    page = browser.open("failing.html")
    assert "FAILED" in page.locator("header .warning").inner_text()
    page.keyboard.press("End")
    assert "expected" in page.locator("#now").inner_text() or "not 4" in page.locator("#now").inner_text(), page.locator("#now").inner_text()
    page.close()
    browser.check()


def a_thousand_drones_play(browser):
    words = ["run", "--world", "virtual", "-n", 1000, "--toy", "--strategy", "tree", "--json", "--no-results"]
    summary = json.loads(sim(*words, "--replay", browser.folder / "thousand.html"))
    page = browser.open("thousand.html")
    for operation in summary["operations"]:
        if operation["phase"] not in ("form group", "leave", "join", "restart leader"):
            continue
        # The next operation begins at once.
        end = round((operation["began_s"] + operation["took_s"]) * 1e6) - 1
        drones = page.evaluate("time => quiver.stateAt(time)", end)["drones"]
        current = sum(drone["state"] == "current" for drone in drones.values())
        assert current == {"form group": 1000, "leave": 990}.get(operation["phase"], 1090), (operation, current)
    page.evaluate("""() => {
        const intervals = [];
        let before;
        const note = now => { if (before) intervals.push(now - before); before = now; requestAnimationFrame(note); };
        requestAnimationFrame(note);
        Object.assign(window, { intervals });
        quiver.frames.length = 0;
        quiver.seek(1.2e6);
        quiver.play();
    }""")
    page.wait_for_timeout(8000)
    frames, intervals = page.evaluate("[quiver.frames, intervals]")
    assert len(frames) > 20, frames
    show = lambda times: f"median {statistics.median(times):.1f} ms, p99 {sorted(times)[len(times) * 99 // 100]:.1f} ms"
    print(f"1,100 drones: a frame is drawn in {show(frames)}; frames come every {show(intervals)}; {len(frames)} frames in 8 s")
    page.evaluate("quiver.speed = 1")
    page.wait_for_function("quiver.time === quiver.end && !quiver.playing", timeout=60_000)
    page.close()
    browser.check()


def the_report_of_a_run_opens(browser):
    sim("-n", 3, "--messages", 2, "--quiet", "--results", browser.folder / "results")
    (report,) = (browser.folder / "results").glob("latest/report.html")
    page = browser.open(report.relative_to(browser.folder))
    assert page.locator("h2", has_text="Time line").is_visible()
    page.close()
    browser.check()


def pages_are_whole_on_narrow_and_wide_screens(browser):
    results = browser.folder / "results"
    sim("scale", "-n", "5,10,20", "--world", "virtual", "--toy", "--radio", "802.15.4", "--quiet", "--results", results)
    sim("scenario", "flapping_drone", "--suite", "toy", "--quiet", "--results", results)
    run(PROGRAMS / "lab", "compare", "--drones", 8, "--budget", "1s", "--quiet", "--results", results)
    pages = [results / "index.html", *results.glob("2*/report.html")]
    assert len(pages) == 5, pages
    out_of_sight = """selector => [...document.querySelectorAll(selector)].filter(it => it.checkVisibility()).filter(it => {
        const { left, right } = it.getBoundingClientRect();
        return left < 0 || right > innerWidth;
    }).map(it => it.outerHTML.slice(0, 80))"""
    for path in pages:
        page = browser.open(path.relative_to(browser.folder))
        for width in [375, 1280]:
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (path, width)
            assert not (hidden := page.evaluate(out_of_sight, "figure svg, .highlights li, .runs td")), (path, width, hidden)
        page.close()
    # Of a replay: the button that plays it is in sight, and the KGC covers no drone.
    page = browser.open("leader_lost_for_good.html")
    page.set_viewport_size({"width": 1280, "height": 900})
    play = page.locator("#play").bounding_box()
    assert play["y"] + play["height"] <= 900, play
    page.set_viewport_size({"width": 375, "height": 900})
    # It draws anew when the browser has told it of the size.
    page.wait_for_timeout(300)
    where = lambda name: page.evaluate("name => quiver.where(name)", name)
    x, y = where("kgc-1")
    for drone in (f"edge-{number}" for number in range(30)):
        other = where(drone)
        assert (other[0] - x) ** 2 + (other[1] - y) ** 2 > 24**2, (drone, other, x, y)
    page.close()
    browser.check()


def pictures(browser):
    """Those of the documents: a moment of a re-key, in the light and in the dark."""
    kept = Image.Quantize
    for name, file, time, drone, scheme, method, refined in [
        ("drones_flying_out_of_range", "replay.png", 125.9, "edge-12", "light", kept.MEDIANCUT, 2),
        ("thousand", "replay-1000.png", 1.771, "edge-77", "dark", kept.FASTOCTREE, 0),
    ]:
        page = browser.open(f"{name}.html", color_scheme=scheme)
        page.evaluate("([time, drone]) => { quiver.seek(time * 1e6); quiver.select(drone); }", [time, drone])
        # High enough for the whole player: another size while the picture is taken would clear what is drawn.
        page.set_viewport_size({"width": 1180, "height": 900})
        page.wait_for_timeout(1000)
        picture = browser.folder / file
        box = page.locator("main").bounding_box()
        page.screenshot(path=picture, clip={"x": 0, "y": 0, "width": 1180, "height": box["y"] + box["height"] + 18})
        Image.open(picture).convert("RGB").quantize(256, method, refined, dither=Image.Dither.NONE).save(DOCS / file, optimize=True)
        print(f"{DOCS / file}: {(DOCS / file).stat().st_size} bytes")
        page.close()


def main():
    folder = pathlib.Path(tempfile.mkdtemp())
    try:
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"])
            browser = Browser(chromium, folder)
            for name, times in SCENARIOS.items():
                shows_what_happened(browser, name, times)
            for test in [leaders_are_shown, clicks_tell_stories, keys_work, cut_files_say_so, failures_are_shown, a_thousand_drones_play, the_report_of_a_run_opens, pages_are_whole_on_narrow_and_wide_screens]:
                test(browser)
                print(f"{test.__name__}: passed")
            if "--pictures" in sys.argv:
                pictures(browser)
            chromium.close()
    finally:
        shutil.rmtree(folder)


main()
