"""Draws results.json, and torch.json beside it if it is there: one bar chart per family.

Usage: plot.py RESULTS.json OUTPUT.png
"""

import json
import os
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

import results  # noqa: E402

TITLES = {
    "loss": "Fused linear + cross-entropy: share of the arithmetic roof",
    "moe": "MoE token permutes: share of the memory roof",
}


def bars(entries, torch_seconds):
    """(label, npuless, baseline, torch) as shares of the roof; None where not measured."""
    rows = []
    for e in entries:
        if e.share is None or e.suffix:
            continue
        label = f"{e.what} {e.dtype}\n" + " × ".join(str(size) for size in e.shape)
        rows.append((label, e.share, e.share_at(e.baseline_seconds),
                     e.share_at(torch_seconds.get(e.name))))
    return rows


def draw(axes, title, rows):
    kinds = [("npuless", 1, "#1f77b4"), ("baseline", 2, "#bbbbbb"), ("PyTorch", 3, "#ff7f0e")]
    kinds = [kind for kind in kinds if any(row[kind[1]] is not None for row in rows)]
    height = 0.8 / len(kinds)
    for i, (name, column, colour) in enumerate(kinds):
        places = [place + i * height for place in range(len(rows))]
        axes.barh(places, [row[column] or 0 for row in rows], height, label=name, color=colour)
    axes.set_yticks([place + 0.4 - height / 2 for place in range(len(rows))])
    axes.set_yticklabels([row[0] for row in rows], fontsize=6)
    axes.invert_yaxis()
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xlabel("share of the roof", fontsize=8)
    axes.set_title(title, fontsize=10)
    axes.legend(loc="lower right", fontsize=8)


def main():
    source, target = sys.argv[1:]
    torch_path = os.path.join(os.path.dirname(source), "torch.json")
    torch_seconds = {}
    if os.path.exists(torch_path):
        with open(torch_path, encoding="utf-8") as file:
            torch_seconds = {name: run["seconds"] for name, run in json.load(file).items()}
    entries = results.read(source)
    charts = {family: bars([e for e in entries if e.family == family], torch_seconds)
              for family in TITLES}
    charts = {family: rows for family, rows in charts.items() if rows}
    if not charts:
        print("plot: nothing in the results has a roof, no picture drawn")
        return
    tallest = max(len(rows) for rows in charts.values())
    figure, axes = plt.subplots(1, len(charts), squeeze=False,
                                figsize=(7 * len(charts), 1.5 + 0.32 * tallest))
    for ax, (family, rows) in zip(axes[0], charts.items()):
        draw(ax, TITLES[family], rows)
    figure.tight_layout()
    figure.savefig(target, dpi=110)


if __name__ == "__main__":
    main()
