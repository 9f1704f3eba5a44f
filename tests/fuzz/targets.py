"""What is read, with sound files to start from. Adding a target is one function.

A target takes the path of a file, reads it, and uses what it read the way compiled code would:
a matrix that points outside then crashes here, and not at a user's.
"""

from __future__ import annotations

import bz2
import gzip
import io
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from tests.fuzz import edits

import omma
from omma import datasets, npz

Seeds = Callable[[], list[bytes]]
ETA = np.array([[0.9, 0.25, 0.0], [0.0, 0.5, 1.0], [0.125, 0.0, 0.75]])
WIDE = 10**7
Y = (ETA > 0.2).astype(np.int8)


@dataclass(frozen=True)
class Target:
    """How to read a file of one kind; ``safe`` ones are plain Python and cannot crash."""

    name: str
    ending: str
    read: Callable[[Path], Any]
    seeds: Seeds
    edit: Callable[[bytes, edits.Pick], bytes]
    safe: bool


TARGETS: dict[str, Target] = {}


def target(
    ending: str,
    seeds: Seeds,
    edit: Callable[[bytes, edits.Pick], bytes] = edits.text,
    *,
    safe: bool = True,
) -> Callable[[Callable[[Path], Any]], Callable[[Path], Any]]:
    """Enter a function into the list."""

    def enter(read: Callable[[Path], Any]) -> Callable[[Path], Any]:
        name = read.__name__
        TARGETS[name] = Target(name, ending, read, seeds, edit, safe)
        return read

    return enter


def use(values: Any) -> None:
    """Go over everything, as a kernel would."""
    if sparse.issparse(values):
        values.sum(axis=1)
        if values.shape[1] < WIDE:  # a column takes room here, and none in the file
            values.tocsc().sum(axis=0)
    else:
        with np.errstate(all="ignore"):  # a table may hold inf; whoever takes it says so
            np.asarray(values).sum()


def saved(write: Callable[..., Any], *arguments: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    write(file, *arguments, **options)
    return file.getvalue()


def texts(*found: str) -> Seeds:
    return lambda: [one.encode() for one in found]


RULES = (
    omma.Rule([1.0, 2.0, 0.5], [-0.5, -0.2, 0.0], k=2, names=["a", "b", "c"]),
    omma.Rule([1.0, 1.0], [0.0, 0.0], k=1, matrix=np.eye(2)),
)


@target(".json", texts(*(rule.to_json() for rule in RULES)), edits.json_text)
def rule(path: Path) -> None:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:  # of the file, before it comes to the library
        return
    repr(omma.Rule.from_json(text))


def sparse_archives(values: Any = ETA) -> list[bytes]:
    forms = ("csr", "csc", "coo", "bsr", "dia")
    return [saved(sparse.save_npz, sparse.csr_array(values).asformat(form)) for form in forms]


@target(".npz", sparse_archives, edits.archive, safe=False)
def sparse_matrix(path: Path) -> None:
    use(datasets.read_matrix(path).values)


def dense_archives() -> list[bytes]:
    named = {"values": ETA, "names": np.array(["a", "b", "c"])}
    return [saved(np.savez, ETA), saved(np.savez_compressed, **named)]


@target(".npz", dense_archives, edits.archive, safe=False)
def dense_matrix(path: Path) -> None:
    use(datasets.read_matrix(path).values)


@target(".npy", lambda: [saved(np.save, ETA), saved(np.save, Y)], edits.array, safe=False)
def mapped_matrix(path: Path) -> None:
    use(datasets.read_matrix(path).values)


def both() -> list[bytes]:
    return [saved(np.savez, X=ETA, y=np.array([0, 1, 2])), saved(np.savez, X=ETA, Y=Y)]


@target(".npz", both, edits.archive, safe=False)
def dataset_arrays(path: Path) -> None:
    found = datasets.read(path)
    use(found.X), use(found.y)


@target(".npz", lambda: sparse_archives(Y), edits.archive, safe=False)
def dataset_labels(path: Path) -> None:
    np.save(path.with_name("features.npy"), ETA)
    found = datasets.read_arrays(path.with_name("features.npy"), path, task="multilabel")
    use(found.X), use(found.y)


def codecs() -> list[bytes]:
    content = {"said": '{"m": 3}', "tp": np.ones(3)}
    return [saved(npz.write, content), saved(npz.write, content, pack=True)]


@target(".npz", codecs, edits.archive, safe=False)
def codec(path: Path) -> None:
    with npz.opened(path) as file:
        file.json("said")
        file.array("tp", kinds="f", shape=(3,), finite=True, low=0)


def made(feedback: str, thin: bool) -> omma.OnlineClassifier:
    """A learner that has decided and learned, with rows that wait in every way."""
    learner = omma.OnlineClassifier(omma.OMMA("macro_f1", feedback=feedback), 3, names=list("abc"))
    rows = sparse.csr_array(ETA) if thin else ETA
    learner.predict(rows, ids=["x", "y", 7])
    learner.update(Y[:1], ids=["y"])
    learner.predict(rows)
    return learner


def learners() -> list[bytes]:
    return [
        saved(omma.online.codec.write, made(feedback, thin))
        for feedback in ("labels", "estimates")
        for thin in (False, True)
    ]


def serve(learner: omma.OnlineClassifier) -> None:
    """Go on with it, so that all that was read is used; first what was decided last."""
    if learner._last is not None:
        learner.update(np.zeros(learner._last.prediction.shape))
    learner.predict(ETA[0] if learner.n_labels == 3 else np.zeros(learner.n_labels))
    for key in list(learner.waiting):
        learner.update(np.zeros(learner.n_labels), id=key)
    learner.stats()


@target(".npz", learners, edits.archive, safe=False)
def learner(path: Path) -> None:
    serve(omma.OnlineClassifier.load(path))


def logs() -> list[bytes]:
    import tempfile

    found = []
    for feedback in ("labels", "estimates"):
        with tempfile.TemporaryDirectory() as folder:
            one = omma.OnlineClassifier(omma.OMMA("macro_f1", feedback=feedback), 3)
            with omma.Journal(folder, one):
                one.predict(sparse.csr_array(ETA), ids=["x", "y", 7])
                one.predict(ETA, ids=["u", "v", 8])
                one.update(Y[:2], ids=["y", "v"])
                one.predict(ETA)
                one.update(Y)
            found.append((Path(folder) / "log-0").read_bytes())
    return found


@target(".log", logs, edits.log, safe=False)
def journal(path: Path) -> None:
    import warnings

    home = path.with_name("journal")
    home.mkdir(exist_ok=True)
    for old in home.glob("*-*"):
        old.unlink()
    shutil.copy(path, home / "log-0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what is cut off
        with omma.Journal.resume(home) as found:
            one = found.learner
    serve(one)


TABLE = "a,b,c\n0.5,1,0\n0.25,0,1e-3\n"


@target(".csv", texts(TABLE, "1,0\n0,1\n", "a,b\nTrue,False\n"))
def csv_matrix(path: Path) -> None:
    use(datasets.read_matrix(path).values)


@target(".csv", texts("id,a,b\nx,0.5,1\ny,0.25,0\n", 'id,a\n"u,v",1\n'))
def csv_ids(path: Path) -> None:
    use(datasets.read_matrix(path, id_column="id").values)


@target(".csv.gz", lambda: [gzip.compress(TABLE.encode())], edits.blind)
def csv_gzip(path: Path) -> None:
    use(datasets.read_matrix(path).values)


@target(".csv.bz2", lambda: [bz2.compress(b"a,b,c\n1,2,x\n3,4,y\n")], edits.blind)
def csv_bzip2(path: Path) -> None:
    use(datasets.read(path).X)


@target(".csv", texts("width,height,kind\n1,2,cat\n3,4,dog\n", "a;b;c\n1;2;0\n3;4;1\n"))
def csv_dataset(path: Path) -> None:
    use(datasets.read(path).X)


ARFF = "@relation 'toy: -C 1'\n@attribute a {0,1}\n@attribute 'b c' real\n@attribute d {x,'y z'}\n"


@target(".arff", texts(ARFF + "@data\n1,2.5,x\n0,-1,'y z'\n", ARFF + "@data\n{0 1, 1 2}\n{}\n"))
def arff(path: Path) -> None:
    found = datasets.read(path)
    use(found.X), use(found.y)


@target(".svm", texts("+1 1:0.5 3:1 # c\n-1 2:2\n", "1,2 1:5\n 2:6\n", "1 qid:3 1:2\n2 2:1\n"))
def svmlight(path: Path) -> None:
    use(datasets.read(path).X)


@target(".txt", texts("2 3 4\n0,3 1:0.5 2:1\n 0:2\n", "1 2 2\n1 0:1\n"))
def xc_dataset(path: Path) -> None:
    use(datasets.read(path, format="xc").X)


@target(".txt", texts("2 3 4\n0,3 1:0.5\n 0:2\n", "2 3\n0:0.5 2:1\n1:1\n", "2 4\n0,3\n1\n"))
def xc_matrix(path: Path) -> None:
    use(datasets.read_matrix(path).values)


def parquets(rows: Any = None) -> list[bytes]:
    path = Path("seed.parquet")
    datasets.write_matrix(path, ETA, ("a", "b", "c"), rows)
    return [path.read_bytes()]


@target(".parquet", parquets, edits.tail, safe=False)
def parquet(path: Path) -> None:
    use(datasets.read_matrix(path).values)


@target(".parquet", lambda: parquets(("id", ("x", "y", "z"))), edits.tail, safe=False)
def parquet_ids(path: Path) -> None:
    use(datasets.read_matrix(path, id_column="id").values)


META = '{"name": "toy", "task": "multiclass", "n": 3, "d": 3, "m": 3, "split": 2, "labels": null}'


@target(".json", texts(META), edits.json_text)
def folder(path: Path) -> None:
    home = path.with_name("toy")
    home.mkdir(exist_ok=True)
    np.savez(home / "X.npz", X=ETA)
    np.savez(home / "Y.npz", y=np.arange(3))
    shutil.copy(path, home / "meta.json")
    datasets.read_folder(home)
