"""Report: one self-contained page that shows what a run did, from the files of its folder."""

import base64
import html
import json
from dataclasses import dataclass
from pathlib import Path

import plotly.graph_objects as go
from plotly.io import to_html

from wmrl_embodied.files import write_atomically
from wmrl_embodied.reporting.sinks import Metrics, read_metrics
from wmrl_embodied.training.evaluate import SPLITS, Evaluation, change
from wmrl_embodied.training.ledger import PARTS
from wmrl_embodied.training.run_folder import RunFolder

Steps = list[Metrics]

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --ground: #ffffff; --quiet: #5d6670; --line: #d5dae0; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ed; --ground: #14171a; --quiet: #9aa4ae; --line: #333a41; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--ground);
       max-width: 60rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; padding: .3rem .6rem;
       border-bottom: 1px solid var(--line); } .quiet { color: var(--quiet); }
.result { font-size: 1.25rem; } .videos { display: flex; flex-wrap: wrap; gap: 1rem; }
figure { margin: 0; } video { width: 256px; max-width: 100%; border-radius: 4px; }
pre { overflow-x: auto; font-size: .8rem; }
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    """One line of a plot."""

    metric: str
    name: str


_PLOTS: tuple[tuple[str, str, tuple[Curve, ...]], ...] = (
    (
        "Score",
        "mean score",
        (
            Curve(metric="score/real", name="real, executed rollouts"),
            Curve(metric="score/predicted", name="predicted, all rollouts"),
        ),
    ),
    (
        "World model and correction",
        "",
        (
            Curve(metric="estimator/r_squared", name="within-group R²"),
            Curve(metric="estimator/slope", name="within-group slope λ"),
            Curve(metric="estimator/eta", name="η, share of the correction"),
            Curve(metric="estimator/real_share", name="real share of the update"),
        ),
    ),
    (
        "Real executions",
        "rollouts",
        (
            Curve(metric="cost/proposed", name="proposed"),
            Curve(metric="cost/executions", name="really executed"),
            Curve(metric="cost/missing", name="missing"),
        ),
    ),
)


def write_report(folder: RunFolder) -> Path:
    """Write ``report.html`` into a run's folder and return its path; works on unfinished runs."""
    steps = read_metrics(folder.metrics)
    parts = [
        f"<h1>{html.escape(folder.config().name)}</h1>",
        _result(folder, steps),
        _success_table(folder),
        *[_plot(number, *plot, steps) for number, plot in enumerate(_PLOTS)],
        _ledger(steps),
        _videos(folder.videos),
        _details(folder),
    ]
    page = (
        "<!doctype html><html lang='en'><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{html.escape(folder.config().name)}</title><style>{_STYLE}</style>"
        f"<body>{''.join(parts)}</body></html>"
    )
    write_atomically(folder.report, page)
    return folder.report


def saving(steps: Steps) -> float | None:
    """Return how many times less CPU a run took than executing all it proposed, or None."""
    if not steps or not steps[-1]["cost/executions"]:
        return None
    last = {name: value or 0.0 for name, value in steps[-1].items()}
    each = last["cost/execution_s"] / last["cost/executions"]
    everything = each * last["cost/proposed"] + last["cost/generation_s"] + last["cost/update_s"]
    return everything / last["cost/total_s"]


def _evaluations(folder: RunFolder) -> tuple[Evaluation | None, Evaluation | None]:
    found = []
    for name in ("before", "after"):
        path = folder.path / f"evaluation_{name}.json"
        known = path.exists()
        found.append(Evaluation.from_json(json.loads(path.read_text())) if known else None)
    return found[0], found[1]


def _result(folder: RunFolder, steps: Steps) -> str:
    before, after = _evaluations(folder)
    sentences = []
    if before and after:
        rates = before.rate("held_out"), after.rate("held_out")
        count, p_value = change(before, after, "held_out")
        sentences.append(
            f"Real success on held-out initial states: <b>{rates[0]}</b> before, "
            f"<b>{rates[1]}</b> after ({count} paired starts, p = {p_value:.3g})."
        )
    ratio = saving(steps)
    if ratio is not None:
        last = steps[-1]
        sentences.append(
            f"{last['cost/executions']:.0f} of {last['cost/proposed']:.0f} rollouts were really "
            f"executed: <b>{ratio:.1f} times less</b> CPU than executing everything."
        )
    return f"<p class='result'>{' '.join(sentences) or 'The run has not finished a step.'}</p>"


def _success_table(folder: RunFolder) -> str:
    evaluations = _evaluations(folder)
    known = next((found for found in evaluations if found), None)
    if known is None:
        return ""
    tasks = list(dict.fromkeys(trial.task for trial in known.trials))
    rows = []
    for task in tasks:
        for split in SPLITS:
            rates = [found.rate(split, task=task) if found else None for found in evaluations]
            shown = "".join(f"<td>{rate or '–'}</td>" for rate in rates)
            name = html.escape(task.replace("_", " "))
            rows.append(f"<tr><td>{name}</td><td>{split.replace('_', '-')}</td>{shown}</tr>")
    missing = sum(found.missing for found in evaluations if found)
    return (
        "<h2>Success by task</h2><table><tr><th>Task</th><th>Initial states</th><th>Before</th>"
        f"<th>After</th></tr>{''.join(rows)}</table><p class='quiet'>Mean plan, Wilson 95 % "
        f"intervals; {missing} evaluation episodes missing.</p>"
    )


def _plot(number: int, title: str, axis: str, curves: tuple[Curve, ...], steps: Steps) -> str:
    figure = go.Figure()
    for curve in curves:
        known = [step for step in steps if step.get(curve.metric) is not None]
        figure.add_scatter(
            x=[step["step"] for step in known],
            y=[step[curve.metric] for step in known],
            name=curve.name,
            mode="lines+markers",
        )
    return f"<h2>{title}</h2>{_figure_html(figure, axis, 'step', with_script=number == 0)}"


def _ledger(steps: Steps) -> str:
    if not steps:
        return ""
    last = steps[-1]
    figure = go.Figure()
    for part in ("execution", *PARTS):
        figure.add_bar(
            x=[last[f"cost/{part}_s"]], y=["this run"], name=part.replace("_", " "), orientation="h"
        )
    figure.update_layout(barmode="stack")
    return f"<h2>Where the CPU seconds went</h2>{_figure_html(figure, '', 'CPU seconds')}"


def _figure_html(
    figure: go.Figure, y_title: str, x_title: str, *, with_script: bool = False
) -> str:
    figure.update_layout(
        template="none",
        height=320,
        margin={"l": 50, "r": 10, "t": 10, "b": 45},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": "#7d8790"},
        legend={"orientation": "h", "y": -0.25},
        xaxis={"title": x_title, "gridcolor": "rgba(127,127,127,0.25)"},
        yaxis={"title": y_title, "gridcolor": "rgba(127,127,127,0.25)"},
    )
    return to_html(
        figure,
        include_plotlyjs=with_script,
        full_html=False,
        config={"responsive": True, "displayModeBar": False},
    )


def _videos(folder: Path) -> str:
    shown = []
    for path in sorted(folder.glob("*.mp4")):
        data = base64.b64encode(path.read_bytes()).decode()
        caption = html.escape(path.stem.replace("_", " "))
        shown.append(
            f"<figure><video controls muted loop src='data:video/mp4;base64,{data}'></video>"
            f"<figcaption class='quiet'>{caption}</figcaption></figure>"
        )
    return f"<h2>Rollouts</h2><div class='videos'>{''.join(shown)}</div>" if shown else ""


def _details(folder: RunFolder) -> str:
    texts = [
        html.escape((folder.path / name).read_text(encoding="utf-8"))
        for name in ("config.json", "versions.json")
    ]
    return (
        "<h2>Configuration and versions</h2><details><summary>Show</summary>"
        f"<pre>{texts[0]}</pre><pre>{texts[1]}</pre></details>"
    )
