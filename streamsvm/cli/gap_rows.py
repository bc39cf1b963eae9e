"""What the report says of objective, duality gap and certificate."""

from typing import Any

from streamsvm.monitor.report import ABOUT


def gap_rows(monitor: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the rows for objective, gap, its mean and certificate, if a monitor measured."""
    rows = []
    if monitor.get("objective") is not None:
        meaning = "penalty plus mean loss, on a sample of the stream: what training lowers"
        low, high = monitor.get("objective_low"), monitor.get("objective_high")
        interval = "" if low is None else f", between {low:.4g} and {high:.4g}"
        rows.append(("objective", f"{monitor['objective']:.4g}{interval}  ({meaning})"))
    if monitor.get("regret_bound") is not None:
        above = (
            f"at most {monitor['regret_bound']:.4g} above that of the best w of the present norm"
        )
        rows.append(("mean loss", f"{monitor['mean_loss']:.4g} so far, {above}"))
    covers = monitor.get("covers", "stream")
    about = ABOUT[covers]
    if monitor.get("certificate") is not None:
        about = monitor["certificate_reason"].removeprefix("of ")
    if monitor.get("gap") is not None:
        gap, low, high = monitor["gap"], monitor["gap_low"], monitor["gap_high"]
        interval = "" if low == high else f", between {low:.4g} and {high:.4g} (95 %)"
        rows.append(("duality gap", f"{gap:.4g}{interval}: {_MEANING.format(about)}"))
    elif monitor.get("kept_gap") is not None:
        known = f"of {about} alone; of all examples it is {_NOT_KNOWN[covers]}"
        rows.append(("duality gap", f"{monitor['kept_gap']:.4g} {known}"))
    if monitor.get("certificate") is not None:
        chance = f"with {monitor['confidence']:.0%} probability"
        rows.append(("mean gap", f"{monitor['averaged_gap']:.4g} since the start, estimated"))
        rows.append(
            ("certificate", f"{monitor['certificate']:.4g}: the mean gap is below, {chance}")
        )
    return rows


NO_GAP = (
    "not measured: the models of this learner begin at different examples and take turns, so there "
    "is no one SVM to compare them with (--learner lasvm has a gap)"
)
_MEANING = "an SVM trained at once on {} has an objective that is lower by at most this"
_NOT_KNOWN = {
    "merged": "at most the objective",
    "problems": "not known, as those left out are not counted",
}
