"""Names of the package: all are there, and nothing is imported before it is asked for."""

import subprocess
import sys

import pytest

import omma


@pytest.mark.parametrize("name", omma.__all__)
def test_every_public_name_is_found(name):
    assert getattr(omma, name) is getattr(omma, name)
    assert name in omma.ROOMS or name in omma.WHERE


def test_others_are_not():
    with pytest.raises(AttributeError, match="module 'omma' has no attribute 'Rules'"):
        omma.Rules  # noqa: B018 (asking is the test)


def test_an_import_alone_loads_no_compiler():
    code = (
        "import omma, sys; print('numba' in sys.modules); "
        "omma.replay; print('numba' in sys.modules, 'omma.online.learner' in sys.modules, "
        "'scipy.optimize' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "False", "False"]
