"""The colours of policies: the same in pictures, in the report and in the documentation.

Okabe and Ito's colours, which colour-blind people tell apart, and one more for ``omma.Auto``; greys
are for rules that never change, so that the eye goes to those that learn. A policy that counts
probabilities has the colour of the one that counts labels, and dashes.
"""

from collections.abc import Collection, Iterable
from typing import Any

# The colour of each policy that learns; policies that are not named take the ones after these.
LEARNERS = {
    "omma": "#0072B2",
    "greedy": "#D55E00",
    "ofo": "#009E73",
    "online_fw": "#CC79A7",
    "auto": "#C4003C",
    "greedy_plug_in": "#7f3800",
    "online_fw_random": "#7a3560",
}
STILL = {
    "baseline": "#666666",
    "offline_fw": "#9a9a9a",
    "tuned": "#444444",
    "offline_fw_top": "#b8b8b8",
    "offline_fw_random": "#7c8c9c",
}
LEARNING = (*LEARNERS.values(), "#E69F00", "#56B4E9")
FIXED = tuple(STILL.values())
DASHES: tuple[Any, ...] = ("-", (0, (3.2, 1.4)), (0, (1, 1.2)))

# The name in LEARNERS or STILL of each class of policies.
FAMILIES = {
    "Auto": "auto",
    "OMMA": "omma",
    "Greedy": "greedy",
    "OFO": "ofo",
    "OnlineFrankWolfe": "online_fw",
    "Threshold": "baseline",
    "TopK": "baseline",
    "Mixture": "offline_fw",
    "FixedRule": "tuned",
}

Look = dict[str, Any]


def color_of(name: str) -> str:
    """The colour of a policy by its name.

    Parameters
    ----------
    name : str
        As comparisons call it, such as "auto", "omma" or "omma_eta".

    Returns
    -------
    str
        A colour of matplotlib, as #RRGGBB.

    Examples
    --------
    >>> color_of("omma_eta") == color_of("omma")
    True
    """
    return {**LEARNERS, **STILL}[name.removesuffix("_eta")]


def name_of(policy: Any) -> str:
    """What a policy is called here, so that its colour is found; its class where it has none."""
    family = FAMILIES.get(type(policy).__name__, type(policy).__name__)
    return family + "_eta" * (family != "auto" and policy.feedback != "labels")


def stroke(color: int, dash: int = 0, fixed: bool = False) -> Look:
    """A line by its numbers of colour and dash, as matplotlib takes it."""
    palette = FIXED if fixed else LEARNING
    again, color = divmod(color, len(palette))  # colours come again with other dashes
    return {"color": palette[color], "linestyle": DASHES[(dash + again) % len(DASHES)]}


def looks(policies: Iterable[str], fixed: Collection[str]) -> dict[str, Look]:
    """Numbers of colour and dash of each policy: variants share a colour.

    >>> looks(["omma", "omma_eta"], fixed=())["omma_eta"]
    {'color': 0, 'dash': 1, 'fixed': False}
    """
    # Policies that have no colour of their own take those that follow, in their order.
    orders = {False: list(LEARNERS), True: list(STILL)}
    by_policy = {}
    for policy in policies:
        family, still = policy.removesuffix("_eta"), policy in fixed
        order = orders[still]
        order += [] if family in order else [family]
        dash = int(policy != family)
        by_policy[policy] = {"color": order.index(family), "dash": dash, "fixed": still}
    return by_policy
