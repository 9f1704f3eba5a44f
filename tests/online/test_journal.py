"""What a learner has decided and learned survives the death of its process, to the bit."""

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy import sparse
from tests import journal_child as child

import omma
from omma._lock import InUseError
from omma.online import journal as module
from omma.online.codec import DECIDED, Decision, Event, EventRow, encode

KILLS = int(os.environ.get("OMMA_KILLS", "24"))
FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes as Unix has them")
COUNT = 120 if KILLS > 100 else 40


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    found = {}
    for name in child.POLICIES:
        told = []
        learner = child.run(tmp_path_factory.mktemp(name) / "j", name, COUNT, told.append)
        found[name] = (told, child.everything(learner))
    return found


def read_all(reading):
    with os.fdopen(reading, "rb") as pipe:
        return pipe.read().decode()


def check(text, told):
    """Whatever the dead process has told must be what an undisturbed one tells."""
    lines = text.splitlines(keepends=True)
    for line in lines:
        assert line == told[int(line.split()[0])]
    return int(lines[-1].split()[0]) + 1 if lines else 0


def killed_run(folder, name, told, begin, after):
    """One life: returns whether it ended by itself."""

    def work(tell):
        begin()
        child.run(folder, name, COUNT, tell)

    process, reading = child.forked(work)
    if after is not None:
        time.sleep(after)
        os.kill(process, signal.SIGKILL)
    text = read_all(reading)
    _, status = os.waitpid(process, 0)
    check(text, told)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, text
    return text, not os.WIFSIGNALED(status)


@FORKS
@pytest.mark.parametrize("name", child.POLICIES)
def test_killed_at_random_points(tmp_path, expected, name):
    told, final = expected[name]
    chance = random.Random(name)
    seen = set()
    for _ in range(KILLS // len(child.POLICIES)):
        text, done = killed_run(tmp_path / "j", name, told, lambda: None, chance.uniform(0, 0.08))
        numbers = [int(line.split()[0]) for line in text.splitlines()]
        assert not seen & set(numbers)  # nothing is decided or learned twice
        seen |= set(numbers)
        if done:
            break
    learner = child.run(tmp_path / "j", name, COUNT)
    assert child.everything(learner) == final


POINTS = [
    ("write-before", (1, 12, 25)),
    ("write-after", (1, 12, 25)),  # between write and sync
    ("write-halfway", (1, 12, 25)),
    ("fsync-before", (2, 4, 6, 9, 10)),
    ("fsync-after", (1, 3, 6, 9, 11)),
    ("replace-before", (1, 2, 3, 4)),  # before a new log has its name
    ("replace-after", (1, 2, 3, 4)),
    ("unlink-before", (1, 2, 3)),  # during a cut
    ("unlink-after", (1, 2, 3)),
]


@FORKS
@pytest.mark.parametrize(("point", "numbers"), POINTS)
@pytest.mark.parametrize("name", ["estimates"] if KILLS <= 100 else list(child.POLICIES))
def test_killed_at_chosen_points(tmp_path, expected, name, point, numbers):
    told, final = expected[name]
    killed = 0
    for number in numbers if KILLS <= 100 else range(1, numbers[-1] + 1):
        folder = tmp_path / str(number)
        _, done = killed_run(folder, name, told, lambda n=number: child.kill_at(point, n), None)
        killed += not done
        learner = child.run(folder, name, COUNT)
        assert child.everything(learner) == final
        files = [one for one in child.whole(folder) if not one.startswith("unfinished")]
        assert len(files) == 1
    assert killed >= len(numbers)


@pytest.fixture
def learner():
    return omma.OnlineClassifier(omma.OMMA("macro_f1"), 4)


def starts(path):
    """Where events begin, and where the last one ends."""
    return [*(byte for _, byte in module.Reader(path).events()), path.stat().st_size]


def test_a_torn_tail_is_cut_off_with_a_sentence(tmp_path, learner):
    with omma.Journal(tmp_path / "j", learner):
        for i in range(5):
            learner.predict(child.ETA[i], id=i)
    path = tmp_path / "j" / "log-0"
    whole = path.read_bytes()
    ends = starts(path)
    for size in range(ends[0], len(whole)):
        path.write_bytes(whole[:size])
        kept = sum(end <= size for end in ends) - 1
        if size in ends:
            journal = omma.Journal.resume(tmp_path / "j")
        else:
            with pytest.warns(UserWarning, match=r"j ended in an unfinished record"):
                journal = omma.Journal.resume(tmp_path / "j")
        with journal:
            assert list(journal.learner.waiting) == list(range(kept))
        assert path.stat().st_size == ends[kept]


def test_a_spoiled_tail_is_cut_off_too(tmp_path, learner):
    """A record of the right length whose bytes are others, as a power cut may leave it."""
    with omma.Journal(tmp_path / "j", learner):
        for i in range(3):
            learner.predict(child.ETA[i], id=i)
    path = tmp_path / "j" / "log-0"
    whole = path.read_bytes()
    *_, before, last = starts(path)
    for place in range(before, last):
        spoiled = bytearray(whole)
        spoiled[place] ^= 1
        path.write_bytes(spoiled)
        with pytest.warns(UserWarning, match=r"j ended in an unfinished record"):
            journal = omma.Journal.resume(tmp_path / "j")
        with journal:
            assert list(journal.learner.waiting) == [0, 1]


def test_every_way_to_decide_and_learn(tmp_path):
    policy = omma.OMMA("macro_f1", k=1, feedback="estimates")
    learner = omma.OnlineClassifier(policy, 4, names=list("abcd"), gap=True)
    eta, y = child.ETA, child.Y
    with omma.Journal(tmp_path, learner):
        learner.predict(sparse.csr_array(eta[:3]), ids="xyz".replace("", " ").split())
        learner.predict(eta[3])
        learner.update(y[3], weight=2.0)
        learner.predict(eta[3:6])
        learner.update(["a", "b", "c"])
        learner.update(y[3], prediction=[1, 0, 0, 0], eta=eta[3])
        learner.predict(sparse.csr_array(eta[[6]]))
        learner.update()
        learner.update(["d", "a"], ids=["z", "x"])
        learner.merge(learner.counts, estimates=learner.counts)
        learner.predict(eta[7], id=7)
    with omma.Journal.resume(tmp_path) as journal:
        assert child.everything(journal.learner) == child.everything(learner)
        assert journal.learner.gap == learner.gap
        mine, other = journal.learner._certificate.arrays(), learner._certificate.arrays()
        assert all(np.array_equal(mine[name], other[name]) for name in other)


def test_names_from_frames(tmp_path, learner):
    import pandas as pd

    frame = pd.DataFrame(child.ETA[:3], columns=list("abcd"))
    with omma.Journal(tmp_path, learner):
        learner.predict(frame[list("dcba")], ids=[0, 1, 2])
    with omma.Journal.resume(tmp_path) as journal:
        assert list(journal.learner.names) == list("dcba")


def test_a_second_one_is_refused(tmp_path, learner):
    with omma.Journal(tmp_path, learner):
        with pytest.raises(InUseError, match="is in use by another journal, process"):
            omma.Journal.resume(tmp_path)
        with pytest.raises(ValueError, match="a learner can have one journal"):
            omma.Journal(tmp_path / "other", learner)
    with pytest.raises(ValueError, match=r"has a journal: go on from it by Journal\.resume"):
        omma.Journal(tmp_path, learner)
    with pytest.raises(FileNotFoundError, match="is not a folder with a journal"):
        omma.Journal.resume(tmp_path / "none")
    learner.predict(child.ETA[0], id=0)  # it goes on without its journal


def test_a_second_process_is_refused(tmp_path, learner):
    again = "import sys, omma; omma.Journal.resume(sys.argv[1])"
    with omma.Journal(tmp_path, learner):
        before = {one.name: one.read_bytes() for one in tmp_path.glob("*-0*")}
        command = [sys.executable, "-c", again, str(tmp_path)]
        other = subprocess.run(command, capture_output=True, text=True)
        assert other.returncode == 1
        assert f"is in use by another journal, process {os.getpid()}" in other.stderr
        assert {one.name: one.read_bytes() for one in tmp_path.glob("*-0*")} == before


def test_a_decision_that_the_learner_cannot_have_made_is_refused(tmp_path, learner):
    decision = Decision(np.zeros(4, np.int8), child.ETA[0], moved=True)
    moved = encode(Event(DECIDED, [EventRow("a", decision)]))
    with omma.Journal(tmp_path, learner):
        pass
    reader = module.Reader(tmp_path / "log-0")
    with (tmp_path / "log-0").open("ab") as file:
        file.write(module.head_of(moved, reader.number, reader.salt) + moved)
    with pytest.raises(ValueError, match=r"log-0 is damaged at byte [\d,]+: .* and no names of"):
        omma.Journal.resume(tmp_path)


def test_a_disk_that_is_full_changes_nothing(tmp_path, learner, monkeypatch):
    true, room = os.write, [3]

    def write(file, content):
        if room[0] <= 0:
            raise OSError(28, "No space left on device")
        room[0] -= 1
        return true(file, content[: len(content) // 2] if room[0] == 0 else content)

    with omma.Journal(tmp_path, learner):
        monkeypatch.setattr(os, "write", write)
        learner.predict(child.ETA[0], id=0)
        learner.predict(child.ETA[1], id=1)
        with pytest.raises(OSError, match="No space left"):
            learner.update(child.Y[0], id=0)
        assert learner.counts.n == 0
        room[0] = 100
        learner.update(child.Y[0], id=0)
    with omma.Journal.resume(tmp_path) as journal:
        assert child.everything(journal.learner) == child.everything(learner)


@pytest.mark.parametrize(("every", "synced"), [(1, 12), (5, 2), (100, 0)])
def test_the_disk_is_asked_to_keep_it(tmp_path, learner, monkeypatch, every, synced):
    """A killed process loses nothing that was written, but a power cut does."""
    found = []
    with omma.Journal(tmp_path, learner, sync=every):
        monkeypatch.setattr(module.Log, "sync", lambda one: found.append(one.kept[0]))
        for i in range(12):
            learner.predict(child.ETA[i], id=i)
        assert len(found) == synced
        assert found == sorted(set(found))
    assert len(found) == synced + 1  # at its end, too


@pytest.mark.skipif(os.name == "nt", reason="folders cannot be synced there")
def test_the_name_of_a_log_is_on_the_disk_before_older_ones_go(tmp_path, learner, monkeypatch):
    """A process may have been killed between both steps, and a power cut may follow."""
    omma.Journal(tmp_path, learner).close()
    before = (tmp_path / "log-0").read_bytes()
    with omma.Journal.resume(tmp_path) as served:
        served.cut()
    (tmp_path / "log-0").write_bytes(before)
    steps, unlink = [], os.unlink
    monkeypatch.setattr(module, "sync_folder", lambda folder: steps.append("sync"))

    def noted(path, **options):
        steps.append(os.path.basename(path))
        unlink(path, **options)

    monkeypatch.setattr(os, "unlink", noted)
    omma.Journal.resume(tmp_path).close()
    assert steps[:2] == ["sync", "log-0"]


def test_a_cut_that_fails_is_as_if_it_had_not_been_begun(tmp_path, learner, monkeypatch):
    true = module.begin_log

    def begin(path, learner, number):
        raise OSError(28, "No space left on device")

    with omma.Journal(tmp_path, learner, snapshot_every=3):
        for i in range(3):
            learner.predict(child.ETA[i], id=i)
        monkeypatch.setattr(module, "begin_log", begin)
        with pytest.raises(OSError, match="No space left"):
            learner.predict(child.ETA[3], id=3)
        assert child.whole(tmp_path) == ["journal.lock", "log-0"]
        found = omma.Journal.read(tmp_path)
        assert list(found.waiting) == list(learner.waiting) == [0, 1, 2]
        monkeypatch.setattr(module, "begin_log", true)
        learner.predict(child.ETA[3], id=3)
        assert child.whole(tmp_path) == ["journal.lock", "log-1"]
    with omma.Journal.resume(tmp_path) as journal:
        assert child.everything(journal.learner) == child.everything(learner)


def test_refused_calls_are_not_written(tmp_path, learner):
    with omma.Journal(tmp_path, learner):
        learner.predict(child.ETA[0], id=0)
        size = (tmp_path / "log-0").stat().st_size
        for call in (
            lambda: learner.update([2, 0, 0, 0], id=0),
            lambda: learner.update([1, 0, 0], id=0),
            lambda: learner.predict(child.ETA[0], id=0),
            lambda: learner.update(child.Y[0], id=9),
            lambda: learner.predict(child.ETA[0] + 1, id=1),
        ):
            with pytest.raises(ValueError, match=r"."):
                call()
        assert (tmp_path / "log-0").stat().st_size == size


def test_a_journal_stands_for_its_learner(tmp_path):
    learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), n_labels=2)
    with omma.Journal(tmp_path / "served", learner) as served:
        decided = served.predict([0.9, 0.2], id="a")
        assert served.waiting is learner.waiting
        with pytest.raises(AttributeError, match="no attribute 'forecast'"):
            _ = served.forecast
    again = omma.Journal.resume(tmp_path / "served")
    np.testing.assert_array_equal(again.predict([0.9, 0.2]), decided)
    again.update([1, 0], id="a")
    assert again.counts == again.learner.counts
    assert again.counts.n == 1
    again.close()


def test_nothing_but_a_learner_has_a_journal(tmp_path):
    with pytest.raises(TypeError, match=r"must be an omma\.OnlineClassifier, got"):
        omma.Journal(tmp_path / "served", omma.OMMA("macro_f1"))
    assert not (tmp_path / "served").exists()
