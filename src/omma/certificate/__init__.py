"""The live certificate: an upper estimate of the best attainable value, beside any policy.

Let z be any counts that the rows before i decide, and C* the counts of the best classifier, Eq. (7)
of the paper. For a concave metric ψ, the tangent at z lies above ψ, so ψ(C*) ≤ ψ(z) + ∇ψ(z)·(C* −
z), which is Eq. (11). With right probabilities, the decision that is best on
the tangent gains in expectation at least what C* does. So the worth of a row,

    u_i = ψ(z) + ∇ψ(z)·(C(η_i, best decision) − z),

has an expectation of at least ψ(C*), whatever the policy does; and the mean of the u_i is tight if
z is near C*. So z are the counts of OMMA(η̂), which runs along in the background, and ∇ψ includes
the derivative by label frequencies, which makes up to first order for those being estimated.
(To second order it does not: metrics are concave at fixed frequencies only. So the inequality holds
once labels have occurred some times, not from the first row.)

The tangent is renewed each time the number of rows has grown by a quarter, so that a row costs what
its stored entries cost, for every metric. Sums are kept for each tangent by itself; the gap is
made of those that began after a quarter of the rows. (The first rows have no tangent yet; their
sums only say how much they weigh.)

Weights matter only in proportion: rows are counted in units of the mean weight so far, and those
without weight are passed over.
"""

from omma.certificate.gap import Gap
from omma.certificate.live import Certificate

__all__ = ["Certificate", "Gap"]
