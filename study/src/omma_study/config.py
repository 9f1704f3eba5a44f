"""A suite: datasets, an estimator, policies and metrics; each combination is a run.

Suites are TOML files: those of the folder ``suites``, and a user's own.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any

import omma
from omma_study import estimators
from omma_study.checks import choice, choices
from omma_study.policies import ETA, POLICIES, TRAINED, supports

# Shuffled sequences, as in the paper.
SEEDS = 5
PRIORS = (0.0, 1e-6, 1e-3, 0.1, 1.0)  # the λ that the paper tries
KNOWN = "known"  # no estimator: the probabilities that synthetic labels were drawn with
ESTIMATORS = {
    "logistic": estimators.LogisticRegression,
    "multinomial": estimators.Multinomial,
    "adam": estimators.LinearAdam,
    "boosted": estimators.BoostedTrees,
    "online": estimators.OnlineLinear,
}
# Which estimators each protocol can have.
PROTOCOLS = {
    "fixed": ("logistic", "multinomial", "adam", "boosted", KNOWN),
    "online": ("online", KNOWN),
}
TASKS = ("multilabel", "multiclass")
KEYS = (
    "title", "paper", "protocol", "task", "datasets", "policies", "metrics", "priors", "seeds",
    "checkpoints", "estimator", "dataset", "policy", "suites",
)  # fmt: skip
# Of keys that a suite may leave out.
DEFAULTS = {"paper": "", "priors": PRIORS, "seeds": SEEDS, "checkpoints": 50, "policy": {},
            "dataset": {}}  # fmt: skip
FOLDER = resources.files("omma_study") / "suites"


@dataclass(frozen=True)
class Source:
    """Where the probabilities of a run come from.

    The ``task`` is "multilabel" or "multiclass": classes count as labels in the former. By the
    ``protocol`` "fixed" an estimator is fitted to the training part, and the test part is decided;
    "online", it learns along the sequence of both parts.
    """

    dataset: str
    task: str
    protocol: str
    estimator: Mapping[str, Any]  # its name and its options
    made: Mapping[str, Any] = field(default_factory=dict)  # generator of synthetic data
    max_train: int | None = None  # fit to at most this many rows of the training part

    @property
    def spec(self) -> dict[str, Any]:
        """How records describe it; unused fields are left out."""
        # Records that were written before a field existed still describe the same run.
        return {name: value for name, value in vars(self).items() if value}


@dataclass(frozen=True)
class Run:
    """One policy on one sequence."""

    suite: str
    source: Source
    policy: str
    metric: str
    k: int | None
    prior: float | None  # λ, for policies that have one
    seed: int  # of the order of the rows
    options: Mapping[str, Any] = field(default_factory=dict)  # further ones, of the policy
    checkpoints: int = 50  # how often the running value is taken

    @property
    def spec(self) -> dict[str, Any]:
        """The description that identifies its record."""
        # Records have policy and feedback in two fields; a fixed rule has no feedback.
        feedback = "labels" if POLICIES[self.policy].priors else None
        if self.policy.endswith(ETA):
            feedback = "estimates"
        spec = {
            **self.source.spec,
            "policy": self.policy.removesuffix(ETA),
            "feedback": feedback,
            **{name: getattr(self, name) for name in ("metric", "k", "prior", "seed")},
        }
        return {**spec, "options": dict(self.options)} if self.options else spec


@dataclass(frozen=True)
class Suite:
    """The runs of one table or figure: policies by name, on sources, for targets.

    A suite with ``parts`` runs these, and has no runs of its own.

    >>> import omma_study
    >>> smoke = omma_study.suite("smoke")
    >>> smoke.title, len(smoke.runs)
    ('A small grid on made-up data, for a first try', 64)
    """

    name: str
    title: str
    paper: str = ""  # which table or figure it follows
    sources: tuple[Source, ...] = ()  # one for each dataset and estimator
    policies: tuple[str, ...] = ()
    targets: tuple[tuple[str, int | None], ...] = ()  # metrics with their budgets
    priors: tuple[float, ...] = PRIORS
    seeds: int = SEEDS  # how many sequences
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of policies
    checkpoints: int = 50
    parts: tuple["Suite", ...] = ()

    @property
    def with_runs(self) -> tuple["Suite", ...]:
        """The suites that have runs of their own: those of its parts, or itself."""
        return self.parts or (self,)

    @property
    def datasets(self) -> tuple[str, ...]:
        """Names of all datasets, each once."""
        names = [source.dataset for suite in self.with_runs for source in suite.sources]
        return tuple(dict.fromkeys(names))

    @property
    def all_policies(self) -> tuple[str, ...]:
        """Names of all policies, each once."""
        return tuple(dict.fromkeys(name for suite in self.with_runs for name in suite.policies))

    @property
    def runs(self) -> list[Run]:
        """All runs; seeds come before metrics, so that an early end leaves whole sequences."""
        return [
            Run(suite.name, source, policy, metric, k, prior, seed, options, suite.checkpoints)
            for suite in self.with_runs
            for source, seed in product(suite.sources, range(suite.seeds))
            for (metric, k), policy in product(suite.targets, suite.policies)
            if supports(policy, metric, k)
            for options in [suite.options.get(policy, {})]
            for prior in (suite.priors if POLICIES[policy].priors else (None,))
        ]

    def limited(
        self,
        *,
        datasets: Sequence[str] | None = None,
        policies: Sequence[str] | None = None,
        seeds: int | None = None,
        priors: Sequence[float] | None = None,
    ) -> "Suite":
        """The same suite with fewer datasets, policies, sequences or priors."""
        choices(f"a dataset of the suite {self.name!r}", datasets or (), self.datasets)
        choices(f"a policy of the suite {self.name!r}", policies or (), self.all_policies)
        return self._limited(datasets, policies, seeds, priors)

    # A part may lack a dataset or a policy that another part has: names are checked once, above.
    def _limited(self, datasets: Any, policies: Any, seeds: Any, priors: Any) -> "Suite":
        return replace(
            self,
            sources=tuple(s for s in self.sources if datasets is None or s.dataset in datasets),
            policies=tuple(p for p in self.policies if policies is None or p in policies),
            seeds=self.seeds if seeds is None else seeds,
            priors=self.priors if priors is None else tuple(priors),
            parts=tuple(part._limited(datasets, policies, seeds, priors) for part in self.parts),
        )


def suites() -> list[Suite]:
    """All suites that come with omma-study.

    >>> [suite.name for suite in suites()][:2]
    ['multiclass_adam', 'multiclass_fixed']
    """
    return [suite(name) for name in _shipped()]


def _shipped() -> list[str]:
    return sorted(file.name[:-5] for file in FOLDER.iterdir() if file.name.endswith(".toml"))


def suite(name: str | Path) -> Suite:
    """A suite by its name, or one of your own by the path of its file.

    >>> suite("smoke").seeds
    2
    >>> suite("smok")
    Traceback (most recent call last):
    ...
    ValueError: a suite must be one of ... or the path of a .toml file; got 'smok', did you mean ...
    """
    path = Path(name)
    if path.suffix == ".toml":
        try:
            return parse(path.stem, path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ValueError(f"the suite '{name}' cannot be read: {error.strerror}") from error
    choice("a suite", str(name), (*_shipped(), "or the path of a .toml file"))
    return parse(str(name), (FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def parse(name: str, text: str) -> Suite:
    """A suite from the text of its file."""
    owner = f"the suite {name!r}"
    try:
        toml = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{owner} is no TOML: {error}") from error
    choices(f"a key of {owner}", toml, KEYS)
    title = _require(owner, toml, "title", str)
    # A suite of suites has nothing of its own.
    if "suites" in toml:
        known = ("title", "paper", "suites")
        choices(f"a key of {owner}, which runs other suites,", toml, known)
        names = _names(owner, toml, "suites")
        parts = tuple(part for part_name in names for part in suite(part_name).with_runs)
        return Suite(name, title, toml.get("paper", ""), parts=parts)
    toml = {**DEFAULTS, **toml}
    protocol = choice(f"protocol of {owner}", toml.get("protocol"), PROTOCOLS)
    policies = _names(owner, toml, "policies")
    choices(f"policies of {owner}", policies, POLICIES)
    for policy in policies:
        if protocol == "online" and POLICIES[policy].kind == TRAINED:
            raise ValueError(
                f"policies of {owner} cannot hold {policy!r}: it learns from a training part, "
                "which the online protocol does not have"
            )
    targets = [read_target(text) for text in _names(owner, toml, "metrics")]
    priors = tuple(map(float, _require(owner, toml, "priors", list | tuple)))
    seeds = _require(owner, toml, "seeds", int)
    if seeds < 1 or min(priors) < 0:
        raise ValueError(f"{owner} must have seeds of at least 1 and priors of at least 0")
    choices(f"a key of [policy] of {owner}", toml["policy"], policies)
    for policy, table in toml["policy"].items():  # a wrong option is found before hours of work
        make_policy(policy, omma.metric("macro_f1"), None, 0.0, table)
    return Suite(
        name,
        title,
        toml["paper"],
        sources=tuple(_sources(owner, toml, protocol)),
        policies=tuple(policies),
        targets=tuple((metric.name, k) for metric, k in targets),
        priors=priors,
        seeds=seeds,
        options=toml["policy"],
        checkpoints=toml["checkpoints"],
    )


def make_policy(
    name: str, metric: omma.Metric, k: int | None, prior: float | None, options: Mapping[str, Any]
) -> Any:
    """A policy with its options; a trained one is not fitted yet."""
    policy = POLICIES[name].make(metric, k, prior or 0.0)
    # Policies without a prior are fixed rules or fitted ones: there is nothing to set.
    known = [option.name for option in fields(policy)] if POLICIES[name].priors else []
    choices(f"an option of the policy {name!r}", options, known)
    return replace(policy, **options)


def make_estimator(table: Mapping[str, Any]) -> Any:
    """The estimator that a table of a suite describes."""
    options = dict(table)
    name = options.pop("name")
    known = [option.name for option in fields(ESTIMATORS[name])]
    choices(f"an option of the estimator {name!r}", options, known)
    return ESTIMATORS[name](**options)


def _sources(owner: str, toml: Mapping[str, Any], protocol: str) -> Iterator[Source]:
    """One for each dataset and estimator."""
    names = _names(owner, toml, "datasets")
    tables = toml["dataset"]
    choices(f"a key of [dataset] of {owner}", tables, names)
    defaults = _require(owner, toml, "estimator", dict | list)
    for name, default in product(names, defaults if isinstance(defaults, list) else [defaults]):
        table = tables.get(name, {})
        known = ("max_train", "estimator", "task", "made")
        choices(f"a key of [dataset.{name}] of {owner}", table, known)
        # A dataset may change single options, or the whole estimator.
        estimator = {**default, **table.get("estimator", {})}
        choice(f"the estimator of {owner}", estimator.get("name"), PROTOCOLS[protocol])
        # Its options are checked when it is made.
        if estimator["name"] != KNOWN:
            make_estimator(estimator)
        task = choice(f"task of {owner}", table.get("task", toml.get("task")), TASKS)
        yield Source(
            name, task, protocol, estimator,
            made=table.get("made", {}), max_train=table.get("max_train"),
        )  # fmt: skip


def read_target(text: str) -> tuple[omma.Metric, int | None]:
    """A metric, with its budget after an @.

    >>> read_target("macro_f1@3"), read_target("multiclass_gmean")
    ((<metric macro_f1>, 3), (<metric multiclass_gmean>, 1))
    """
    metric, k = omma.metrics.read_target(text)
    # Multi-class metrics are about one class a row, which records say as k = 1.
    return metric, 1 if k is None and metric.multiclass else k


def _require(owner: str, table: Mapping[str, Any], key: str, kind: Any) -> Any:
    value = table.get(key)
    if not isinstance(value, kind):
        raise ValueError(f"{owner} must have the key {key!r} of type {kind}, got {value!r}")
    return value


def _names(owner: str, table: Mapping[str, Any], key: str) -> list[str]:
    names: list[str] = _require(owner, table, key, list)
    if not names or len(set(names)) < len(names):
        raise ValueError(f"{key} of {owner} must be a list of distinct names, got {names!r}")
    return names
