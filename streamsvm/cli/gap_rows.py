"""What the report says of objective, duality gap and certificate."""

from typing import Any

from streamsvm.monitor.figures import ABOUT, FIGURES, WORRY, gaps_of


def gap_rows(monitor: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what is said of objective, gap, its mean and the bound of it, by names of figures."""
    rows = []
    if monitor.get("objective") is not None:
        low, high = monitor.get("objective_low"), monitor.get("objective_high")
        interval = "" if low is None else f", between {low:.4g} and {high:.4g}"
        what = FIGURES["objective"].meaning
        rows.append(("objective", f"{monitor['objective']:.4g}{interval}  ({what})"))
    if monitor.get("regret_bound") is not None:
        above = (
            f"at most {monitor['regret_bound']:.4g} above that of the best w of the present norm"
        )
        rows.append(("mean_loss", f"{monitor['mean_loss']:.4g} so far, {above}"))
    covers = monitor.get("covers", "stream")
    names = gaps_of(covers)
    now, mean, most = (monitor.get(name) for name in names)
    if now is not None:
        rows.append((names.now, f"{now:.4g}{_beside(monitor, covers)}"))
    if mean is not None:
        chance = f"with {monitor['confidence']:.0%} probability"
        bound = "" if most is None else f"; {chance} at most {most:.4g}, its certificate"
        rows.append((names.mean, f"{mean:.4g} since the start{bound}"))
    return rows


def _beside(monitor: dict[str, Any], covers: str) -> str:
    """Return what stands behind the gap: its interval, what it is about, and whether to worry."""
    about = ABOUT[covers]
    if monitor.get("certificate") is not None:
        about = monitor["certificate_reason"].removeprefix("of ")
    low, high = monitor.get("gap_low"), monitor.get("gap_high")
    interval = "" if low == high else f", between {low:.4g} and {high:.4g} (95 %)"
    text = f"{interval}: more training on {about} could lower the objective by at most this"
    if (share := monitor.get("gap_share")) is not None:
        text += f", {share:.1%} of it; worry above {WORRY:.0%}"
    return text + f"; of all examples it is {_NOT_KNOWN[covers]}" if covers in _NOT_KNOWN else text


_NOT_KNOWN = {
    "merged": "at most the objective",
    "problems": "not known, as those left out are not counted",
}
