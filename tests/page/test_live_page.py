import http.client
import json
import os
import pickle
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connectors import ArrowSource, ParquetSource
from streamsvm import LaRankClassifier, LASVMClassifier, LivePage, TrackingMonitor
from streamsvm.errors import ParameterError
from streamsvm.kernels import RBF
from streamsvm.monitor.figures import SHARE
from streamsvm.monitor.series import MOST_POINTS
from streamsvm.page import charts, live_page
from streamsvm.page.confusion import confusion
from streamsvm.page.regions import Regions
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.runner import Run
from tests.interruptions import needs_ctrl_c

HOSTILE = "</script><img src=x onerror=alert(1)>\"'&"


def events(n, labels=(False, True), names=("a", "b"), seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2)).astype(np.float32)
    y = np.hypot(*x.T) > 1.2
    columns = dict(zip(names, x.T, strict=True))
    return pa.table(columns), [labels[int(one)] for one in y]


def monitor_of(n=0, every=100, **data):
    monitor = TrackingMonitor(LASVMClassifier(seed=1), every=every)
    if n:
        monitor.learn_many(*events(n, **data))
    return monitor


@contextmanager
def answer(page, path="/", method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=10)
    try:
        connection.request(method, path, headers=headers)
        yield connection.getresponse()
    finally:
        connection.close()


def text_of(page, path="/"):
    with answer(page, path) as found:
        assert found.status == 200
        return found.read().decode()


def stalled(page):
    """Return the connection of a viewer that reads no further."""
    viewer = socket.create_connection(("127.0.0.1", page.port))
    viewer.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert viewer.recv(1)
    return viewer


def next_event(stream):
    """Return the next event of a stream: its name and its data."""
    lines = []
    while (line := stream.readline().decode().rstrip("\n")) or not lines:
        if line and not line.startswith(":"):
            lines.append(line.partition(": ")[2])
    return lines[0], json.loads(lines[1]) if len(lines) > 1 and lines[1] else None


def until(stream, wanted):
    """Return the parts of a stream, put together, as soon as they are `wanted`."""
    parts = {}
    while not wanted(parts):
        name, found = next_event(stream)
        assert name == "parts"
        parts |= found
    return parts


def test_a_run_says_that_it_has_ended(monkeypatch):
    monitor, states = monitor_of(), []
    x, y = events(300)
    with LivePage(monitor, port=0) as page:

        def note(*_, **more):
            states.append(page.parts()["state"])

        monkeypatch.setattr(LASVMClassifier, "finish", note)
        source = ArrowSource(x.append_column("y", pa.array(y)), "y")
        Run(source, monitor, finish=True, on_progress=note).execute()
        assert {*states[:-1]} == {"learning"} and states[-1] == "finishing"
        assert page.parts()["state"] == "the run has ended"
        assert pickle.loads(pickle.dumps(monitor)).phase == "learning"
        page.say("saved")
        assert page.parts()["state"] == "saved"


def test_the_page_is_whole_without_scripts_and_takes_nothing_from_elsewhere():
    with LivePage(monitor_of(600), 0, title="A title") as page:
        text = text_of(page)
        assert "<h1>A title</h1>" in text and "LASVMClassifier" in text
        shown = [part for part in re.findall(r"<section[^>]*>", text) if "hidden" not in part]
        names = [re.search('"(.*)-title"', part)[1] for part in shown]
        # Of one batch there is one record, from which no line can be drawn.
        assert names == ["regions", "confusion", "values"]
        for loaded in re.findall(r'(?:src|href)="([^"#]+)"', text):
            loaded = loaded.removeprefix("./")
            assert loaded == "data:," or text_of(page, f"/{loaded}")
        assert 'href="./" aria-current="page"' in text
        assert 'href="./?of=late" aria-current="page"' in text_of(page, "/?of=late")
        assert "://" not in text + text_of(page, "/page.css") + text_of(page, "/page.js")
        with answer(page, "/", "HEAD") as found:
            policy = found.headers["Content-Security-Policy"]
            assert policy.startswith("default-src 'none'") and found.read() == b""
        for path, method, host, status in (
            ("/../setup", "GET", "localhost", 404),
            ("/", "POST", "localhost", 501),
            ("/", "GET", "elsewhere.example", 421),
            ("/", "GET", f"localhost:{page.port}", 200),
        ):
            with answer(page, path, method, Host=host) as found:
                assert found.status == status


def test_two_viewers_are_sent_what_has_changed_and_the_end():
    monitor, drawn = monitor_of(), []
    page = LivePage(monitor, 0, figures=lambda: drawn.append(1) or {"events": 7, "lag": None})
    for _ in range(3):
        monitor.learn_many(*events(100))
    assert not drawn  # nobody looks
    with answer(page, "/events") as one, answer(page, "/events") as other:
        firsts = [until(stream, lambda parts: "accuracy" in parts) for stream in (one, other)]
        assert firsts[0] == firsts[1] and len(drawn) == 1
        assert 'role="img" aria-label="Accuracy, from 100 to 300 examples.' in firsts[0]["accuracy"]
        assert "<dt>events</dt><dd>7</dd>" in firsts[0]["now"]
        monitor.learn_many(*events(100))
        name, changed = next_event(one)
        assert name == "parts" and "to 400 examples" in changed["accuracy"]
        assert "gap" in changed and "bad_events_by_kind" not in changed  # that is as it was
        page.close()
        last = until(one, lambda parts: parts.get("state") == "ended")
        assert next_event(one) == ("end", None) and last
    assert len(drawn) < 5
    with pytest.raises(OSError):
        text_of(page)


def test_a_viewer_that_does_not_read_holds_nobody():
    page = LivePage(monitor_of(300), 0)
    with stalled(page):
        start = time.monotonic()
        assert "LASVM" in text_of(page)
        page.close()
        assert time.monotonic() - start < 5.0


def test_viewers_that_do_not_read_lose_their_places(monkeypatch):
    monkeypatch.setattr(live_page, "_MOST_VIEWERS", 2)
    monkeypatch.setattr(live_page, "_UNREAD_SECONDS", 0.2)
    figures = {"most_frequent": "x" * 3_000_000}  # more than a connection holds unread
    with LivePage(monitor_of(), 0, figures=lambda: figures) as page:
        viewers = [stalled(page) for _ in range(2)]
        end = time.monotonic() + 5.0
        while page.n_viewers and time.monotonic() < end:
            time.sleep(0.02)
        with answer(page, "/events") as found:
            assert found.status == 200
        for one in viewers:
            one.close()


@pytest.mark.parametrize("labels", [(1, "x"), (1, "1"), (True, "x"), ("a", "\ud800")])
def test_labels_that_arrow_refuses_are_drawn(labels):
    with LivePage(monitor_of(300, labels=labels), 0, title="\udcff") as page:
        text = text_of(page)
    assert "cannot be drawn" not in text and 'class="regions"' in text
    assert labels != (1, "1") or '<th scope="row">&#x27;1&#x27;</th>' in text


def test_a_part_that_fails_is_said_once_and_drawn_no_more_often(monkeypatch, caplog):
    calls = []

    def figures():
        calls.append(1)
        raise ValueError("secret")

    with LivePage(monitor_of(300), 0, figures=figures) as page:
        texts = [text_of(page) for _ in range(20)]
        assert len(calls) == 1
        page.say("again")
        texts.append(text_of(page))
    assert all("cannot be drawn: ValueError, see the log" in text for text in texts)
    assert all('class="regions"' in text and "secret" not in text for text in texts)
    assert len(calls) >= 2 and caplog.text.count("now cannot be drawn") == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_process_closes_nothing_and_does_not_hold_the_port():
    monitor = monitor_of()
    page = LivePage(monitor, 0)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            page.close()
            os.write(writing, b"closed")
            time.sleep(20)
        finally:
            os._exit(0)
    try:
        assert os.read(reading, 6) == b"closed" and "LASVM" in text_of(page)
        page.close()
        with LivePage(monitor, page.port):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reading)
        os.close(writing)


def test_addresses_that_there_are_not_or_are_in_use_and_what_is_no_monitor_are_refused():
    monitor = monitor_of()
    with pytest.raises(ParameterError, match="host=''"):
        LivePage(monitor, 0, "")
    for port in (-1, 70_000, "8000"):
        with pytest.raises(ParameterError, match="port="):
            LivePage(monitor, port)
    with LivePage(monitor, 0) as page:
        said = f"port {page.port} of 127.0.0.1: Address already in use"
        with pytest.raises(OSError, match=said):
            LivePage(monitor, page.port)
    with pytest.raises(ParameterError, match="use a TrackingMonitor"):
        LivePage(LASVMClassifier(), 0)


def test_until_the_first_record_the_page_says_when_it_comes():
    monitor = monitor_of(every=500)
    with LivePage(monitor, 0) as page:
        monitor.learn_many(*events(100))
        assert "Records come each 500 examples; there are 100 examples so far." in text_of(page)
        monitor.learn_many(*events(400))
        page.say("learning")
        assert "Records come each" not in text_of(page)


def test_while_the_model_is_held_the_page_comes_without_figures(monkeypatch):
    monkeypatch.setattr(live_page, "_PATIENCE", 0.05)
    monitor = monitor_of(300)
    with LivePage(monitor, 0) as page:
        with monitor.learner.lock:
            assert "figures follow" in text_of(page)
            assert "figures follow" in text_of(page)
        page.parts()
        assert "figures follow" not in text_of(page)


def test_all_that_come_at_once_see_the_first_figures(monkeypatch):
    monitor = monitor_of(300)
    with LivePage(monitor, 0) as page:
        made = page._made.made

        def slow(of_late):
            time.sleep(0.2)
            return made(of_late)

        monkeypatch.setattr(page._made, "made", slow)
        with ThreadPoolExecutor(4) as viewers:
            texts = list(viewers.map(lambda _: text_of(page), range(4)))
    assert not any("figures follow" in text for text in texts)


def test_rows_and_columns_of_the_confusion_matrix_have_one_order():
    table = confusion([("b", "c", 1), ("a", "b", 2), ("c", "a", 3)])
    columns = re.findall(r'scope="col">(\w)<', table)
    assert columns == re.findall(r'scope="row">(\w)<', table)


def test_regions_of_more_labels_than_colours_are_of_the_others():
    monitor = TrackingMonitor(LaRankClassifier(RBF(gamma=9.0), C=10.0), every=500)
    x = np.random.default_rng(0).uniform(size=(600, 2))
    frame = pa.table({"a": x[:, 0], "b": x[:, 1]})
    monitor.learn_many(frame, (4 * x[:, 0]).astype(int) * 3 + (3 * x[:, 1]).astype(int))
    drawn = Regions(monitor.model, monitor.learner).drawn()
    colours = [int(c) for c in re.findall(r'<rect class="c(\d)" width="14"', drawn)]
    assert colours == list(range(8)) and drawn.count("other labels") == 2
    assert sum(map(int, re.findall(r"<b>(\d+)%", drawn))) in range(96, 105)


def test_names_from_data_are_escaped():
    labels = (HOSTILE, "b" + HOSTILE)
    monitor = monitor_of(400, labels=labels, names=("a" + HOSTILE, "b"))
    counts = {"bad_events_by_kind": {HOSTILE: 2}, "lag_by_partition": {HOSTILE: 3}}
    with LivePage(monitor, 0, title=HOSTILE, figures=lambda: counts) as page:
        text = text_of(page)
        assert "<img" not in text and "&lt;img src=x onerror=alert(1)&gt;&quot;&#x27;&amp;" in text
        assert text.count("<script") == text.count("</script>") == 1
        with answer(page, "/events") as stream:
            parts = until(stream, lambda parts: "regions" in parts)
    of_data = [parts[name] for name in ("confusion", "regions", *counts)]
    assert all("&lt;img" in part and "<img" not in part for part in of_data)


def test_points_are_bounded_and_drifts_marked():
    monitor = monitor_of(200)
    record = monitor.last() | {"n_drifts": 1, "last_drift": 123_456}
    for i in range(1, 10_000):
        monitor.history.add(record | {"n_examples": i * 1000, "accuracy": i % 7 / 7})
    with LivePage(monitor, 0) as page:
        text, late = text_of(page), text_of(page, "/?of=late")
        with answer(page, "/events?of=late") as stream:
            sent = until(stream, lambda parts: "accuracy" in parts)
    assert "Accuracy, from 9,800,000 to 9,999,000 examples." in late
    assert "Accuracy, from 9,800,000 to 9,999,000 examples." in sent["accuracy"]
    assert len(monitor.history) <= 2000 and len(text) < 250_000
    lines = re.findall(r'class="l\d" d="(M[^"]+,[^"]+)"', text)
    assert len(lines) >= 5 and max(line.count(",") for line in lines) <= MOST_POINTS + 1
    assert '<path class="mark" d="M' in text and "a drift was noticed" in text


def test_the_axis_holds_the_later_half_of_a_band():
    x = np.arange(1.0, 101.0)
    y, half = np.full(100, 0.8), 2.0 / np.sqrt(x)
    chart = charts.Chart("t", x, [charts.Line("l", y, (y - half, y + half))], SHARE)
    edge = re.search(r'class="b0" d="([^"]+)"', charts.svg(chart))[1]
    points = [float(point.split(",")[1]) for point in re.findall(r"[\d.-]+,[\d.-]+", edge)]
    assert all(0.0 <= height <= 166.0 for height in points[50:150])  # later half, there and back
    assert min(points) < 0.0


def test_values_of_events_only_if_asked_for():
    monitor = monitor_of(400)
    with LivePage(monitor, 0) as page:
        assert "<circle" not in text_of(page) and "Across a: " in text_of(page)
    with LivePage(monitor, 0, values=True) as page:
        assert "<circle" in text_of(page)


def test_looking_changes_nothing():
    watched, alone = monitor_of(400), monitor_of(400)
    with LivePage(watched, 0) as page:
        assert "regions" in text_of(page)
        for monitor in (watched, alone):
            monitor.learn_many(*events(200, seed=2))
        text_of(page)
    timed = {"examples_per_second", "latency_p50", "latency_p99"}
    last = [{k: v for k, v in m.last().items() if k not in timed} for m in (watched, alone)]
    assert last[0] == last[1] and watched.learner.counters == alone.learner.counters


def test_a_run_that_goes_on_from_a_checkpoint_shows_its_history(tmp_path):
    x, y = events(900)
    pq.write_table(x.append_column("y", pa.array(y)), tmp_path / "data.parquet")

    def run(limit):
        monitor = monitor_of()
        with ParquetSource(tmp_path / "data.parquet", target="y") as source:
            found = Run(source, monitor, limit=limit, checkpoint=Checkpoint(tmp_path / "c"))
            with LivePage(monitor, 0, history=found.report.history) as page:
                found.execute()
                return text_of(page)

    run(500)
    text = run(None)
    for title in (
        "Accuracy",
        "Distance from the optimum of all examples so far",
        "Examples a second",
    ):
        assert f'aria-label="{title}, from 100 to 900 examples.' in text


@needs_ctrl_c
def test_the_command_keeps_the_page_until_it_is_interrupted(tmp_path):
    x, y = events(300)
    pq.write_table(x.append_column("y", pa.array(y)), tmp_path / "data.parquet")
    options = ["--target", "y", "--learner", "lasvm", "--page", "0", "--page-wait"]
    command = [sys.executable, "-m", "streamsvm", "replay", str(tmp_path / "data.parquet")]
    with subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        url = next(line for line in process.stderr if line.startswith("page: ")).split()[1]
        process.port = int(re.search(r":(\d+)/", url)[1])
        assert any("progressive accuracy" in line for line in process.stdout)
        text = text_of(process)
        time.sleep(0.3)  # the report is written to its end
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        process.communicate()
    assert "the run has ended" in text and "<dt>events</dt><dd>300</dd>" in text
    cells = re.findall(r'<td class="n h\d( right)?">(\d+)<', text)
    right, n = (sum(int(count) for is_right, count in cells if is_right or k) for k in (0, 1))
    assert n > 290
    assert f"<dt>progressive accuracy</dt><dd>{right / n:.1%} (" in text


def test_in_a_browser(tmp_path):
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    monitor = monitor_of(labels=(HOSTILE, "b"))
    monitor.learn_many(*events(200, labels=(HOSTILE, "b")))
    page = LivePage(monitor, 0)
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"]
    # The browser's own time waits for the stream of events, which ends as the page is closed.
    options += ["--virtual-time-budget=60000", "--dump-dom"]
    with subprocess.Popen(
        [browser, *options, page.url], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        end = time.monotonic() + 30
        while page.n_viewers == 0 and time.monotonic() < end:
            time.sleep(0.05)
        monitor.learn_many(*events(300, labels=(HOSTILE, "b"), seed=1))
        page.close()
        found = process.communicate(timeout=60)[0]
    assert '<span id="state">ended</span>' in found  # put there by the script
    assert "these are the last figures" in found and "to 500 examples" in found
    hidden = re.findall(r'<section aria-labelledby="(\w+)-title" hidden', found)
    assert "accuracy" not in hidden and "lag_by_partition" in hidden
    assert "<img" not in found
