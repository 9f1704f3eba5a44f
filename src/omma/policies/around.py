"""What policies share that stand around another one and change what its counts are of."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from omma._validate import shown
from omma.limits import Limit
from omma.metrics import Metric
from omma.policies.auto import Auto
from omma.policies.base import Policy
from omma.policies.ofo import OFO
from omma.policies.omma import OMMA
from omma.rows.frames import Names


class Around(Policy):
    """A policy that decides as the one inside does, which is a field ``policy``."""

    policy: Policy

    def check_inside(self, why: str) -> None:
        """Refuse a policy that keeps more than counts."""
        if not isinstance(self.policy, OMMA | Auto | OFO):
            raise TypeError(
                f"policy of {type(self).__name__} must be an OMMA, Auto or OFO, {why}, got "
                f"{shown(self.policy)}"
            )

    @property
    def feedback(self) -> str:  # type: ignore[override]
        """What is counted: that of the policy inside."""
        return self.policy.feedback

    @property
    def names(self) -> Names | None:
        return self.policy.names

    @property
    def objective(self) -> Metric | None:
        return self.policy.objective

    @property
    def needs_labels(self) -> bool:
        return self.policy.needs_labels

    @property
    def needs_eta(self) -> bool:
        return self.policy.needs_eta

    @property
    def budget(self) -> int | None:
        return self.policy.budget

    @property
    def limits(self) -> tuple[Limit, ...]:
        return self.policy.limits

    def for_names(self, names: Names | None) -> Any:
        return replace(self, policy=self.policy.for_names(names))  # type: ignore[type-var]

    def check_labels(self, m: int) -> None:
        self.policy.check_labels(m)

    def to_json(self) -> dict[str, Any]:
        """The policy as JSON describes it: the one inside, and the options of this one."""
        options = [one.name for one in fields(self) if one.name != "policy"]  # type: ignore[arg-type]
        own = {name: getattr(self, name) for name in options}
        return {"policy": type(self).__name__, "of": self.policy.to_json(), **own}

    def whole_rows(self, metric: Metric | None) -> str | None:
        return self.policy.whole_rows(metric)
