"""Named tuples on their way into compiled code.

Numba takes more than a microsecond for every named tuple among the arguments of a call, and a tenth
of that for a plain one: nothing in a replay, but half of a single step. So steps pass plain tuples,
whose first member is a tag: as many empty tuples as the kind has a number. Their count is a part of
the type, so that the kind is known while compiling, and named tuples are made again inside.
"""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.extending import intrinsic, overload

from omma.kernels import kinds
from omma.kernels.jit import INSIDE
from omma.kernels.select import AtMost, Exactly

# Places are part of machine code on disk, which is found again only where all sources are the same.
KINDS: tuple[Any, ...] = (
    *(one for one in vars(kinds).values() if isinstance(one, type) and issubclass(one, tuple)),
    Exactly,
    AtMost,
)
PLACES = {kind: place for place, kind in enumerate(KINDS)}


def plain(value: Any) -> Any:
    """A term, a budget or a tuple of such without named tuples, which ``unpacked`` makes again.

    >>> plain(Exactly(3))[1:]
    (3,)
    >>> unpacked(plain((kinds.Kappa(1.0, 0.5), None)))
    (Kappa(weight=1.0, epsilon=0.5), None)
    """
    if not isinstance(value, tuple):
        return value
    members = tuple(plain(member) for member in value)
    if type(value) is tuple:
        return members
    return (((),) * PLACES[type(value)], *members)


def unpacked(given: Any) -> Any:
    """What ``plain`` was given."""
    if not isinstance(given, tuple):
        return given
    if not given or not isinstance(given[0], tuple) or any(given[0]):
        return tuple(unpacked(member) for member in given)
    return KINDS[len(given[0])](*(unpacked(member) for member in given[1:]))


register: Any = overload  # its stubs do not know of all options


@register(unpacked, jit_options=INSIDE)
def _unpacked(given):
    return lambda given: rebuilt(given)


@intrinsic
def rebuilt(context, given):
    """The same in compiled code, where it only gives the members other names."""

    def generate(target, builder, signature, arguments):
        return _value(target, builder, given, arguments[0])

    return _type(given)(given), generate


def _type(given):
    if not isinstance(given, types.BaseTuple):
        return given
    kind, members = _taken_apart(given)
    return types.BaseTuple.from_types([_type(member) for member in members], kind)


def _value(target, builder, given, value):
    if not isinstance(given, types.BaseTuple):
        return value
    members = _taken_apart(given)[1]
    parts = cgutils.unpack_tuple(builder, value, len(given))[-len(members) :]
    made = [
        _value(target, builder, member, part) for member, part in zip(members, parts, strict=True)
    ]
    return target.make_tuple(builder, _type(given), made)


def _taken_apart(given):
    """The kind that a tag tells, None without one, and the members after it."""
    first = given.types[0] if len(given) else None
    if isinstance(first, types.BaseTuple) and all(one == types.Tuple(()) for one in first.types):
        return KINDS[len(first)], given.types[1:]
    return None, given.types
