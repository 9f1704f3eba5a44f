"""What is acknowledged is there after any crash, exactly once; docs/durability.md says what for."""

import gc
import os
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import sparse
from tests import journal_child as child, journal_faults as faults

import omma
from omma._lock import InUseError
from omma.cli import main
from omma.online import journal
from omma.online.journal import Follower

FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes as Unix has them")
# A file that an interrupt leaves open is closed when nobody has it any more.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture(scope="module", autouse=True)
def no_waiting_for_the_disk():
    """Whether a sync fails matters here; whether it syncs, only a power cut could tell."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The learner after each number of calls; what a whole life needs is compiled, too."""
    faults.Life(tmp_path_factory.mktemp("whole") / "j").go_on()
    gc.collect()
    gc.freeze()  # what is there already need not be looked through after each fault
    yield faults.states()
    gc.unfreeze()


# A fault at every system call, and an interrupt at every line


@pytest.mark.parametrize(
    ("kind", "when"),
    [(OSError, "before"), (OSError, "after"), (OSError, "halfway"), (KeyboardInterrupt, "before")],
)
def test_an_error_at_every_system_call(tmp_path, expected, kind, when):
    def fail():
        raise kind(28, "No space left on device")

    # A call that raises after it has done its work is in flight; so is one that was interrupted.
    in_flight = 0 if kind is OSError and when != "after" else 1
    names, number = [], 0
    while True:
        number += 1
        layer = faults.Layer(number, fail, when)
        life = faults.Life(tmp_path / str(number))
        try:
            with layer.armed():
                life.go_on()
        except kind:
            pass
        if layer.name is None:
            break
        names.append(layer.name)
        faults.check(life, expected, in_flight)
        shutil.rmtree(life.folder, ignore_errors=True)
    assert {"write", "fsync", "replace", "unlink"} <= set(names)
    assert number > (100 if when == "before" else 20)


@FORKS
@pytest.mark.parametrize("when", ["before", "halfway"])  # after one is before the next
def test_killed_at_every_system_call(tmp_path, expected, when):
    def live(tell):
        layer = faults.Layer(number, lambda: os._exit(9), when)
        with layer.armed():
            faults.Life(folder, lambda count: tell(f"{count}\n")).go_on()

    number, killed = 0, True
    while killed:
        number += 1
        folder = tmp_path / str(number)
        process, reading = child.forked(live)
        with os.fdopen(reading, "rb") as pipe:
            told = pipe.read().split()
        _, status = os.waitpid(process, 0)
        assert os.WEXITSTATUS(status) in (0, 9)
        killed = os.WEXITSTATUS(status) == 9
        life = faults.Life(folder)
        life.acknowledged = int(told[-1]) if told else 0
        if killed:
            faults.check(life, expected, 1)
    assert number > (100 if when == "before" else 20)


def test_an_interrupt_at_every_line(tmp_path, expected):
    lines = faults.Lines()
    with lines.armed():
        faults.Life(tmp_path / "all").go_on()
    assert len(lines.visits) > 300
    for number, (place, visits) in enumerate(lines.visits.items()):
        first = 1 if place[0] == journal.__file__ else visits
        for visit in {first, visits}:
            life = faults.Life(tmp_path / f"{number}-{visit}")
            # An interrupt in ``__del__`` ends there.
            with suppress(KeyboardInterrupt), faults.Lines(place, visit).armed():
                life.go_on()
            faults.check(life, expected, 1)


# Each fault by itself


@pytest.fixture
def learner():
    return omma.OnlineClassifier(omma.OMMA("macro_f1"), 3)


def decided(learner, rows):
    for i in rows:
        learner.predict(faults.ETA[i], id=i)


@pytest.mark.parametrize("error", [OSError(16, "Device or resource busy"), KeyboardInterrupt()])
def test_tidying_up_that_fails_destroys_nothing(tmp_path, learner, monkeypatch, error):
    true, failed = os.unlink, []

    def unlink(path, **options):
        if not failed:
            failed.append(path)
            raise error
        true(path, **options)

    with omma.Journal(tmp_path, learner, snapshot_every=3) as served:
        decided(learner, range(3))
        with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
            patch.setattr(os, "unlink", unlink)
            served.cut()
        assert list(omma.Journal.read(tmp_path).waiting) == [0, 1, 2]
        decided(learner, range(3, 7))  # which cuts again, and tidies up
        assert sorted(tmp_path.glob("*-*")) == [tmp_path / "log-2"]
    with omma.Journal.resume(tmp_path) as again:
        assert list(again.learner.waiting) == list(range(7))


def test_after_a_failed_sync_nothing_is_taken_until_it_is_resumed(tmp_path, learner, monkeypatch):
    def fsync(descriptor):
        raise OSError(5, "Input/output error")

    served = omma.Journal(tmp_path, learner, sync=1)
    decided(learner, [0])
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        with pytest.raises(OSError, match="Input/output error"):
            decided(learner, [1])
    for call in (
        lambda: decided(learner, [1]),
        lambda: learner.update(faults.Y[0], id=0),
        lambda: learner.merge(learner.counts),
        served.cut,
    ):
        with pytest.raises(OSError, match=r"takes no more calls.* call Journal\.resume"):
            call()
    assert learner.predict(faults.ETA[2]).shape == (3,)  # which changes nothing
    served.close()
    with omma.Journal.resume(tmp_path) as again:
        assert list(again.learner.waiting) == [0]
        decided(again.learner, [1])
    assert list(omma.Journal.read(tmp_path).waiting) == [0, 1]


@pytest.mark.parametrize("ids", [True, False])
def test_an_interrupt_between_write_and_count(tmp_path, learner, monkeypatch, ids):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    with omma.Journal(tmp_path, learner):
        decided(learner, [0])
        learner.predict(faults.ETA[1])
        with monkeypatch.context() as patch:
            patch.setattr(learner, "_wait" if ids else "_count", interrupted)
            with pytest.raises(KeyboardInterrupt):
                _ = decided(learner, [1]) if ids else learner.update(faults.Y[1])
        with pytest.raises(OSError, match="takes no more calls"):
            decided(learner, [1])
    with omma.Journal.resume(tmp_path) as again:
        assert (list(again.learner.waiting), again.learner.counts.n) == ([0], 0)


def test_a_failed_merge_is_not_in_the_journal(tmp_path, learner, monkeypatch):
    def replace(*paths):
        raise OSError(28, "No space left on device")

    with omma.Journal(tmp_path, learner):
        decided(learner, [0])
        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", replace)
            with pytest.raises(OSError, match="No space left"):
                learner.merge(omma.Counts([3, 1, 0], [4, 4, 0], [5, 2, 0], 20))
        with pytest.raises(OSError, match="takes no more calls"):
            decided(learner, [1])
    with omma.Journal.resume(tmp_path) as again:
        assert (list(again.learner.waiting), again.learner.counts.n) == ([0], 0)


# Damaged bytes


@pytest.fixture
def folder(tmp_path, learner):
    """A journal of 20 rows, three of which wait."""
    with omma.Journal(tmp_path / "j", learner, snapshot_every=30):
        for i in range(20):
            learner.predict(faults.ETA[i], id=i)
            if i >= 3:
                learner.update(faults.Y[i - 3], id=i - 3)
    return tmp_path / "j"


def places(path):
    """Where events begin, and where the last one ends."""
    return [*(byte for _, byte in journal.Reader(path).events()), path.stat().st_size]


def run(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)), catch_exceptions=False)


def refusals(folder):
    """What each of those says who read a journal; none may change it."""
    before = {one.name: one.read_bytes() for one in folder.iterdir()}
    found = []
    for read in (omma.Journal.read, omma.Journal.resume, Follower(folder).look):
        with pytest.raises(ValueError, match=r"is damaged at byte [\d,]+: ") as error:
            read(folder) if read.__name__ != "look" else read()
        found.append(f"Error: {error.value}.\n")
    for command in (("watch", folder, "--once"), ("journal", "check", folder)):
        answer = run(*command)
        assert answer.exit_code == 1
        found.append(answer.output)
    assert {one.name: one.read_bytes() for one in folder.iterdir()} == before
    assert set(found) == {found[0]}
    return found[0]


def test_a_bit_that_has_flipped_is_refused_with_its_place(folder, tmp_path):
    path = folder / "log-1"
    whole, starts = path.read_bytes(), places(path)
    for byte in [0, 3, 5, 9, 17, 30, *range(starts[0], starts[1]), starts[3] + 21, starts[-2] - 1]:
        spoiled = bytearray(whole)
        spoiled[byte] ^= 4
        path.write_bytes(spoiled)
        start = max([0, *(one for one in starts if one <= byte)])
        assert f"log-1 is damaged at byte {start:,}: " in refusals(folder)
    assert "omma journal check" in refusals(folder)
    assert "--salvage NEW" in refusals(folder)


@pytest.mark.parametrize("size", [0, 10, 24, 2_000])
def test_without_its_snapshot_nothing_is_salvaged_or_promised(folder, tmp_path, size):
    path = folder / "log-1"
    path.write_bytes(path.read_bytes()[:size])
    answer = refusals(folder)
    assert "log-1 is damaged at byte 0: it does not begin with a whole snapshot" in answer
    assert "--salvage" not in answer
    salvaged = run("journal", "check", folder, "--salvage", tmp_path / "new")
    assert (salvaged.exit_code, salvaged.output) == (1, answer)
    assert not (tmp_path / "new").exists()


def test_what_is_sound_before_the_damage_is_salvaged(folder, tmp_path, learner):
    path = folder / "log-1"
    whole, starts = path.read_bytes(), places(path)
    spoiled = bytearray(whole)
    spoiled[starts[2] + 25] ^= 1
    path.write_bytes(spoiled)
    done = run("journal", "check", folder, "--salvage", tmp_path / "new")
    assert done.exit_code == 0
    rest = len(whole) - starts[2]
    told = f"log-1 from byte {starts[2]:,} on, {rest:,} bytes with {len(starts) - 4} sound records"
    assert told in done.output
    assert "18 decided by id, 14 learned, 4 waiting for labels" in done.output
    assert path.read_bytes() == spoiled
    with omma.Journal.resume(tmp_path / "new") as saved:
        assert faults.done(saved.learner) == 30 + 2
    assert "is sound: 18 decided by id" in run("journal", "check", tmp_path / "new").output
    again = run("journal", "check", tmp_path / "new", "--salvage", tmp_path / "more")
    assert (again.exit_code, (tmp_path / "more").exists()) == (1, False)
    assert run("journal", "check", folder, "--salvage", tmp_path / "new").exit_code == 1


@pytest.mark.parametrize("kind", ["dropped", "twice", "swapped", "foreign"])
def test_records_in_another_order_are_refused(folder, tmp_path, kind):
    path = folder / "log-1"
    whole, starts = path.read_bytes(), places(path)
    head, *records = [whole[start:end] for start, end in zip([0, *starts], starts, strict=False)]
    if kind == "dropped":
        del records[2]
    elif kind == "twice":
        records.insert(2, records[1])
    elif kind == "swapped":
        records[2], records[3] = records[3], records[2]
    else:
        other = omma.OnlineClassifier(omma.OMMA("macro_f1"), 3)
        with omma.Journal(tmp_path / "other", other):
            decided(other, range(5))
        content = (tmp_path / "other" / "log-0").read_bytes()
        begin, end = places(tmp_path / "other" / "log-0")[2:4]
        records[2] = content[begin:end]
    path.write_bytes(b"".join([head, *records]))
    assert f"log-1 is damaged at byte {starts[2]:,}: " in refusals(folder)


def test_the_bytes_of_an_unfinished_record_are_kept(folder):
    path = folder / "log-1"
    whole, starts = path.read_bytes(), places(path)
    path.write_bytes(whole[:-5])
    assert "It ends in an unfinished record" in run("journal", "check", folder).output
    with pytest.warns(UserWarning, match=r"bytes were moved to unfinished-1-\d+"):
        omma.Journal.resume(folder).close()
    assert (folder / f"unfinished-1-{starts[-2]}").read_bytes() == whole[starts[-2] : -5]
    assert path.read_bytes() == whole[: starts[-2]]


def test_a_follower_forgets_what_was_taken_back(tmp_path, learner):
    with omma.Journal(tmp_path, learner) as served:
        decided(learner, [0])
        follower = Follower(tmp_path)
        decided(learner, [1])
        assert list(follower.look().waiting) == [0, 1]
        kept = served._log.kept
        decided(learner, [2])
        assert list(follower.look().waiting) == [0, 1, 2]
        served._log.kept = kept
        served._log.roll_back()
        learner.waiting.drop(2)
        decided(learner, [3])
        assert list(follower.look().waiting) == [0, 1, 3]


# Journals of other versions


def test_a_journal_of_another_version_is_refused(tmp_path, learner, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(journal.codec, "FORMAT", "omma-learner-2")
        omma.Journal(tmp_path / "snapshot", learner).close()
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "snapshot-0.npz").write_bytes(b"PK")
    (tmp_path / "log" / "log-0").write_bytes(b"\xf7omj" + bytes(100))
    for read in (omma.Journal.read, omma.Journal.resume):
        sentence = "is not an omma learner of the format omma-learner-3, got 'omma-learner-2'"
        with pytest.raises(ValueError, match=sentence):
            read(tmp_path / "snapshot")
        with pytest.raises(ValueError, match="go on with that version, or begin a new journal"):
            read(tmp_path / "log")
    for command in (
        ("watch", tmp_path / "log", "--once"),
        ("report", tmp_path / "log"),
        ("journal", "check", tmp_path / "log", "--salvage", tmp_path / "new"),
        ("stream", "-", "--journal", tmp_path / "log"),
    ):
        answer = run(*command)
        assert answer.exit_code == 1
        assert answer.output.count("log-0 is of a journal of an earlier version of omma") == 1
        assert "damaged" not in answer.output
        assert "--salvage" not in answer.output
    assert not (tmp_path / "new").exists()
    with pytest.raises(ValueError, match=r"has a journal: go on from it by Journal\.resume"):
        omma.Journal(tmp_path / "log", learner)


# Two writers, and forks


@FORKS
def test_a_fork_cannot_write(tmp_path, learner):
    served = omma.Journal(tmp_path, learner)
    decided(learner, [0])
    process, reading = child.forked(lambda tell: in_a_fork(served, tell))
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read().decode().splitlines()
    assert os.waitpid(process, 0)[1] == 0
    assert len(told) == 4
    for line in told:
        assert f"belongs to process {os.getpid()}, of which this one is a fork" in line
    with pytest.raises(InUseError):
        omma.Journal.resume(tmp_path)  # the child's close has left the lock
    decided(learner, [2])
    served.close()
    assert list(omma.Journal.read(tmp_path).waiting) == [0, 2]


def in_a_fork(served, tell):
    learner = served.learner
    for call in (
        lambda: decided(learner, [1]),
        lambda: learner.update(faults.Y[0], id=0),
        lambda: learner.merge(learner.counts),
        served.cut,
    ):
        try:
            call()
        except InUseError as error:
            tell(f"{error}\n")
    assert (list(learner.waiting), learner.counts.n) == ([0], 0)
    served.close()
    decided(learner, [1])  # without its journal


@FORKS
def test_a_lock_ends_with_its_process_and_not_with_its_forks(tmp_path, learner):
    """A worker that was forked off may live longer."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        omma.Journal(tmp_path, learner)
        begun, begins = os.pipe()
        worker = os.fork()
        if worker == 0:
            os.close(writing)
            os.write(begins, b"1")
            os.read(reading, 1)  # until the test has ended
            os._exit(0)
        os.read(begun, 1)  # the worker runs: it may be late on a busy machine
        os._exit(0)
    os.close(reading)
    os.waitpid(process, 0)
    resumed = omma.Journal.resume(tmp_path)
    assert resumed.learner.counts == learner.counts
    resumed.close()
    os.close(writing)


def test_deleting_the_lock_file_admits_nobody(tmp_path, learner):
    with omma.Journal(tmp_path, learner):
        (tmp_path / "journal.lock").unlink()
        again = "import sys, omma; omma.Journal.resume(sys.argv[1])"
        command = [sys.executable, "-c", again, str(tmp_path)]
        other = subprocess.run(command, capture_output=True, text=True)
        assert other.returncode == 1
        assert f"{tmp_path} is in use by another process" in other.stderr
        decided(learner, [0])
    with omma.Journal.resume(tmp_path) as again:
        assert list(again.learner.waiting) == [0]


# Labels that are unknown


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_rows_without_any_known_label(tmp_path, layout):
    eta, unknown = np.array([[0.9, 0.2]]), layout(np.array([[np.nan, np.nan]]))
    with_journal, without = (omma.OnlineClassifier(omma.Auto("macro_f1"), 2) for _ in range(2))
    with omma.Journal(tmp_path, with_journal):
        for one in (with_journal, without):
            one.predict(layout(eta), ids=["a"])
            one.predict(layout(eta), ids=["b"])
            one.update(unknown, ids=["a"])
            if layout is np.asarray:
                one.update([np.nan, 1], id="b")
                one.predict(eta[0])
                one.update([np.nan, np.nan])
    assert faults.everything(with_journal) == faults.everything(without)
    assert faults.everything(omma.Journal.read(tmp_path)) == faults.everything(without)


def test_the_page_names_tests_that_exist():
    here = Path(__file__).parent
    page = (here.parents[1] / "docs" / "durability.md").read_text(encoding="utf-8")
    code = "".join((here / f"test_{name}.py").read_text() for name in ("durability", "journal"))
    names = set(re.findall(r"`(test_\w+)`", page))
    assert len(names) > 20
    assert not [name for name in names if f"def {name}(" not in code]
