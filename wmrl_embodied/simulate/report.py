"""Report: a comparison as a table on the terminal, and as JSON, CSV and one figure on disk."""

import csv
import json
from dataclasses import asdict
from pathlib import Path

import plotly.graph_objects as go
from plotly.subplots import make_subplots
from rich.console import Console
from rich.table import Table

from wmrl_embodied.simulate.engine import REAL_STEP_COST
from wmrl_embodied.simulate.suite import CellResult, PresetResult, SuiteResult, cells_of

_COLUMNS = 3


def write(result: SuiteResult, folder: Path) -> None:
    """Write ``suite.json``, ``suite.csv`` and ``suite.html`` into ``folder``, making it if needed.

    Args:
        result: The comparison.
        folder: Where the files go; files of the same names are replaced.
    """
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "config": asdict(result.config),
        **result.summary(),
        "cells": {
            preset.name: {cell.cell.name: _row(cell) for cell in preset.cells}
            for preset in result.presets
        },
    }
    (folder / "suite.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    with (folder / "suite.csv").open("w", newline="", encoding="utf-8") as file:
        rows = [
            {"preset": preset.name, "cell": cell.cell.name, **_row(cell)}
            for preset in result.presets
            for cell in preset.cells
        ]
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    figure(result).write_html(folder / "suite.html", include_plotlyjs=True)


def figure(result: SuiteResult) -> go.Figure:
    """Return one panel per world-model error: score against cost, averaged over its cells."""
    biases = list(result.config.biases)
    rows = -(-len(biases) // _COLUMNS)
    plot = make_subplots(
        rows=rows, cols=_COLUMNS, subplot_titles=biases, shared_xaxes=True, shared_yaxes=True
    )
    cells = cells_of(result.config)
    for panel, bias in enumerate(biases):
        members = [number for number, cell in enumerate(cells) if cell.bias == bias]
        for preset in result.presets:
            curve = preset.curves.values[:, members].mean((0, 1))
            plot.add_trace(
                go.Scatter(
                    x=(preset.curves.costs / REAL_STEP_COST).tolist(),
                    y=curve.tolist(),
                    name=preset.name,
                    legendgroup=preset.name,
                    showlegend=panel == 0,
                    line={"color": _colour(result.presets, preset)},
                ),
                row=panel // _COLUMNS + 1,
                col=panel % _COLUMNS + 1,
            )
    plot.update_xaxes(title_text="cost, in steps of real GRPO", row=rows)
    plot.update_yaxes(title_text="normalised real score", col=1)
    plot.update_layout(
        height=320 * rows,
        template="plotly_white",
        title=f"Equal cost, {result.config.seeds} seeds, {result.config.optimizer}",
    )
    return plot


def show(result: SuiteResult, console: Console) -> None:
    """Print the table of estimators.

    Args:
        result: The comparison.
        console: Where to print.
    """
    seeds, count = result.config.seeds, len(cells_of(result.config))
    table = Table(title=f"{count} cells, {seeds} seeds each, {result.config.optimizer}, equal cost")
    table.add_column("estimator")
    for title in ("mean", "worst cell", "worse / better than real", "worse / better than anchors"):
        table.add_column(title, justify="right")
    table.add_column("speed-up, ordered cells", justify="right")
    for preset in result.presets:
        row = preset.summary()
        worst = min(preset.cells, key=lambda cell: cell.final.mean)
        better = sum(cell.minus_anchors.low > 0.0 for cell in preset.cells)
        half = (worst.final.high - worst.final.low) / 2.0
        table.add_row(
            preset.name,
            f"{row['mean']:.3f}",
            f"{worst.final.mean:.3f} ± {half:.3f} {worst.cell.name}",
            f"{row['worse_than_real']} / {row['better_than_real']}",
            f"{row['worse_than_anchors_only']} / {better}",
            f"{row['speedup']:.1f}",
        )
    console.print(table)


def _row(cell: CellResult) -> dict[str, float | None]:
    return {
        "final": cell.final.mean,
        "final_low": cell.final.low,
        "final_high": cell.final.high,
        "minus_real": cell.minus_real.mean,
        "minus_real_low": cell.minus_real.low,
        "minus_real_high": cell.minus_real.high,
        "minus_anchors_only": cell.minus_anchors.mean,
        "minus_anchors_only_low": cell.minus_anchors.low,
        "minus_anchors_only_high": cell.minus_anchors.high,
        "speedup": cell.speedup,
        "executed": cell.executed,
    }


def _colour(presets: tuple[PresetResult, ...], preset: PresetResult) -> str:
    palette = go.Figure().layout.template.layout.colorway or (
        "#1f77b4",
        "#ff7f0e",
        "#2ca02c",
        "#d62728",
        "#9467bd",
        "#8c564b",
        "#e377c2",
        "#7f7f7f",
        "#bcbd22",
        "#17becf",
    )
    return palette[presets.index(preset) % len(palette)]
