"""What the paper proves, checked on distributions where everything is known.

Bounds are functions, constants of metrics are numbers, and regret is measured so closely that its
rate can be seen. ``suites`` lists the simulations, ``run`` leaves records of them, ``tables`` and
``figures`` show what they found.
"""

from omma_study.theory import utilities
from omma_study.theory.bounds import (
    Constants,
    Smoothing,
    Task,
    constants,
    estimates_bound,
    frequency_bound,
    omma_bound,
    smoothed_bound,
    worst_constants,
)
from omma_study.theory.distributions import (
    Beta,
    Discrete,
    Distribution,
    Independent,
    LogisticNormal,
    Softmax,
    Stream,
)
from omma_study.theory.optimum import Optimum, exhaustive, optimum
from omma_study.theory.regret import Measured, Problem, measure
from omma_study.theory.run import figures, run, suites, tables
from omma_study.theory.simulation import Simulation

__all__ = [
    "Beta",
    "Constants",
    "Discrete",
    "Distribution",
    "Independent",
    "LogisticNormal",
    "Measured",
    "Optimum",
    "Problem",
    "Smoothing",
    "Softmax",
    "Stream",
    "Task",
    "constants",
    "estimates_bound",
    "exhaustive",
    "frequency_bound",
    "measure",
    "omma_bound",
    "optimum",
    "smoothed_bound",
    "Simulation",
    "figures",
    "run",
    "suites",
    "tables",
    "utilities",
    "worst_constants",
]
