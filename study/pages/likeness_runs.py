"""Over how many sequences and λ the streams were run, and what was not."""

from __future__ import annotations

from likeness_match import streams
from omma.comparison.entrants import TITLES
from omma_study import suite as suite_of
from omma_study.datasets.paper_like import SHAPES
from omma_study.policies import has_prior

SEQUENCES, PRIORS = 5, 5  # of the paper


def sequences(study):
    """Over how many sequences and λ, in words; those with fewer by name."""
    groups = {}
    for section in streams(study):
        for policy in section.comparison.policies:
            many, priors = _amounts(_run(section, policy))
            if many < SEQUENCES or priors < (PRIORS if has_prior(policy) else 1):
                groups.setdefault((section.stands_for, many, priors), []).append(TITLES[policy])
    sets = {}
    for (name, *amounts), policies in groups.items():
        sets.setdefault((*amounts, " / ".join(policies)), []).append(name)
    told = [
        f"{policies}: {_many(many, 'sequence')}, {priors} λ on {', '.join(names)}"
        for (many, priors, policies), names in sets.items()
    ]
    words = f"Values are means over {SEQUENCES} sequences with the best of {PRIORS} λ, as in the "
    return f"{words}paper, but for these. {'; '.join(told)}." if told else f"{words}paper."


def _amounts(cells):
    """The fewest sequences of any cell, and its λ."""
    counts = [len(runs.values) for cell in cells for runs in cell.by_prior.values()]
    return min(counts), min(len(cell.by_prior) for cell in cells)


def _run(section, policy):
    cells = (section.comparison.cells[policy, one] for one in section.comparison.metrics)
    return [cell for cell in cells if cell.by_prior]


def _many(number, of):
    return f"{number} {of}" if number == 1 else f"{number} {of}s"


def left_out(study, policies):
    """What was not run, in words."""
    there = {section.stands_for for section in streams(study)}
    missing = [name for name in SHAPES if name not in there]
    lacking = [
        f"{TITLES[policy]} on {section.stands_for}"
        for section in streams(study)
        for policy in policies
        if policy in suite_of(section.suite).entrants and not _ran(section, policy)
    ]
    told = [*missing, *lacking]
    return f"Not run: {', '.join(told)}." if told else "All nine sets, all methods of the paper."


def _ran(section, policy):
    return policy in section.comparison.policies and bool(_run(section, policy))
