"""The folder of a report: index.html, report.json, tables, and plots if matplotlib is installed.

The page is one HTML file: advice, figures, confusion matrix and plots with captions.
"""

import base64
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from string import Template
from typing import Any

from streamsvm import TrackingMonitor
from streamsvm.model_files.replacing import naming
from streamsvm.monitor.plots import draw_lines
from streamsvm.page.confusion import confusion
from streamsvm.run.report import RunReport
from streamsvm.support.printing import escape

_CAPTIONS = {
    "gap": "More training on these examples could lower the objective (a penalty for complex "
    "models plus the mean loss) by at most this. Worry if it stays above a tenth of the objective. "
    "Shaded, with 95 %: where the gap is estimated from a sample, its interval; where its mean has "
    "a bound, what is up to it. The last point uses a larger sample than the others.",
    "objective": "What training lowers: a penalty for complex models plus the mean loss, estimated "
    "on a sample of the stream. It rises where the stream becomes harder.",
    "support_vectors": "The examples kept to predict with. Memory and the time of an event grow "
    "with them; max_support_vectors bounds them.",
    "accuracy": "Each example was predicted before it was learnt. Shaded: intervals that hold at "
    "all moments at once, with 95 % probability; that of late is of the last 1,000 to 2,000. If it "
    "falls below that since the start, what is to be learnt changes: a window or the adaptive "
    "learner follows it; where that one noticed a drift, there is a dotted line.",
    "loss": "The mean loss so far, of each example before it was learnt, and a bound of how much "
    "higher it is than that of the best weights as large as the present ones.",
    "dual": "What each step raises: it bounds from below what any weights would have lost.",
    "kappa": "The share of training steps that changed nothing. Near 1, the stream brings little "
    "that is new, and a smaller K or reprocess would do.",
    "delta": "How far the model is from the optimum of the examples that it keeps. At tau or below "
    "there is nothing left to train; above it, --finish (or model.finish()) goes there.",
}
"""What each plot shows, and what to do."""

_PAGE = Template(
    """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
th { text-align: left; vertical-align: top; padding-right: 2rem; font-weight: 600 }
td, th { border-bottom: 1px solid #ddd; padding-top: .3rem; padding-bottom: .3rem }
table { border-collapse: collapse }
figure { margin: 1.5rem 0 }
img { max-width: 100% }
td.n { text-align: right; padding-left: 1rem }
.right { font-weight: 600 }
.wide { overflow-x: auto }
li { max-width: 45rem }
@media (prefers-color-scheme: dark) {
  body { background: #1b1b1b; color: #ddd }
  td, th { border-color: #444 }
  img { background: white }
}
</style>
<h1>$title</h1>
<p>$made</p>
$advice
<table>
$rows
</table>
$confusion
$plots
</html>
"""
)


def write(
    folder: str,
    report: RunReport,
    result: dict[str, Any],
    monitor: TrackingMonitor | None,
    rows: list[tuple[str, str]],
) -> list[str]:
    """Write the files of a report into a folder, which is made; return their names.

    `result` is the content of report.json, `rows` are names and values of the figures. Last, what
    to install for plots that could not be made.
    """
    path = Path(folder)
    path.mkdir(exist_ok=True)
    files: dict[str, Callable[[Path], Any]] = {
        "report.json": lambda file: file.write_text(json.dumps(result, indent=2) + "\n"),
        "history.parquet": report.history.write_parquet,
    }
    if monitor is not None:
        files["monitor.parquet"] = monitor.history.write_parquet
    for name, make in files.items():
        with naming(path / name):
            make(path / name)
    with naming(path):
        plots = _plots(path, report, monitor)
    page = path / "index.html"
    cells = (f"<tr><th>{escape(n)}</th><td>{escape(value)}</td></tr>" for n, value in rows)
    listed = "".join(f"<li>{escape(sentence)}</li>\n" for sentence in result["advice"])
    made = f"{datetime.now():%Y-%m-%d %H:%M}, streamsvm {result['version']}"
    text = _PAGE.substitute(
        title=escape(f"{result['target']} of {result['data']}"),
        made=escape(made),
        advice=f"<h2>Advice</h2>\n<ul>\n{listed}</ul>" if listed else "",
        rows="\n".join(cells),
        confusion=_confusion(report.confusion),
        plots="\n".join(_figure(plot) for plot in plots),
    )
    with naming(page):
        page.write_text(text, encoding="utf-8")
    written = [str(file) for file in [page, *(path / name for name in files), *plots]]
    return written if plots else [*written, "no plots: pip install matplotlib"]


def _plots(folder: Path, report: RunReport, monitor: TrackingMonitor | None) -> list[Path]:
    """Write the plots and return their files; none without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return []
    matplotlib.use("Agg")
    files = [] if monitor is None else monitor.plot(folder)
    made = {file.stem for file in files}
    of_run = [name for name in ("accuracy", "support_vectors", "delta") if name not in made]
    return files + draw_lines(report.history, "rows", folder, of_run)


def _figure(plot: Path) -> str:
    """Return a plot and what it shows."""
    name, data = plot.stem, base64.b64encode(plot.read_bytes()).decode()
    image = f'<img alt="{escape(name.replace("_", " "))}" src="data:image/png;base64,{data}">'
    caption = _CAPTIONS.get(name, "")
    return f"<figure>\n{image}\n<figcaption>{escape(caption)}</figcaption>\n</figure>"


def _confusion(pairs: Sequence[Sequence[Any]]) -> str:
    """Return the section of labels and predictions."""
    caption, table = confusion((y, p, n) for y, p, n in pairs)
    if not table:
        return ""
    title = "<h2>Confusion matrix and recall</h2>"
    return f'{title}\n<p>{caption}</p>\n<div class="wide">{table}</div>'
