"""Figures of the study: how each metric develops along the sequence, and what each λ gives."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from omma.plots import FIXED, LEARNING, Band, color_of, plot_bands, plot_priors, save
from omma.policies import REGISTRY
from omma_study.policies import ETA, POLICIES, VARIANTS
from omma_study.records import Record, safe
from omma_study.sections import Section, sections


def _band(section: Section, policy: str, target: str, by_prior: bool) -> Band:
    """The running value with the best λ, or the final value with each λ."""
    # Grey for rules that do not learn along the sequence.
    fixed = POLICIES[policy].kind != "online"
    colors = [color.lower() for color in (FIXED if fixed else LEARNING)]
    # The authors' schedule has the colour of what it varies: the library knows only the latter.
    known = policy if policy in REGISTRY else VARIANTS[policy]
    look: dict[str, Any] = {
        "color": colors.index(color_of(known).lower()),
        "dash": int(policy.endswith(ETA)),
        "fixed": fixed,
    }
    if by_prior:
        table = section.by_prior.loc[(policy, target)]
        return Band(
            table.index.to_numpy(), table["mean"].to_numpy(), table["std"].to_numpy(), **look
        )
    runs = section.best_runs
    best = runs[(runs["policy"] == policy) & (runs["target"] == target)]
    curves = np.array([history["values"] for history in best["history"]])
    # One sequence has no deviation.
    std = curves.std(axis=0, ddof=1) if len(curves) > 1 else np.full(curves.shape[1], np.nan)
    return Band(np.array(best["history"].iloc[0]["rows"]), curves.mean(axis=0), std, **look)


def draw(
    section: Section,
    by_prior: bool = False,
    policies: Collection[str] | None = None,
) -> Any:
    """A panel for each metric, with some policies or all."""
    panels = {
        target: {
            POLICIES[policy].title: _band(section, policy, target, by_prior)
            for policy in section.policies
            if (policies is None or policy in policies) and (policy, target) in section.cells.index
        }
        for target in section.targets
    }
    title = f"{section.title}. Mean ± standard deviation over {section.seeds} shuffled sequences."
    if by_prior:
        title = f"{title} A ring marks the best λ of each policy."
        return plot_priors(panels, section.priors, title=title)
    return plot_bands(panels, title=title)


def to_png(records: Iterable[Record], folder: str | Path) -> list[Path]:
    """Draw running values and values by λ, a picture for each section and kind."""
    paths: list[Path] = []
    Path(folder).mkdir(parents=True, exist_ok=True)
    for number, section in enumerate(sections(records), start=1):
        for kind in ("running", "priors") if section.priors else ("running",):
            # Two estimators of a dataset may share their name.
            path = Path(folder) / f"{number:02}-{safe(section.name)}-{kind}.png"
            save(draw(section, by_prior=kind == "priors"), path)
            paths.append(path)
    return paths
