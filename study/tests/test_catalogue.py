"""The catalogue, and sets that come from their providers: from a server in this process."""

import gc
import hashlib
import io
import json
import tarfile
import threading
import types
import warnings
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from data_folder import require
from scipy import sparse

from omma.datasets import Dataset, read, write_folder
from omma_study.datasets import CATALOGUE, Entry, File, load, loading

XC = "2 3 4\n0,3 1:3 2:4\n 0:2\n"
TEST = "1 3 4\n2 2:5\n"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path):
    """A folder, and the address it is served at."""
    served = tmp_path / "served"
    served.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(served)))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield served, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()
    with warnings.catch_warnings():  # requests leaves an answer it does not read to be collected
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def toy(server, monkeypatch):
    """An entry of the catalogue whose two files are served."""
    served, address = server
    (served / "train.txt").write_text(XC)
    (served / "test.txt").write_text(TEST)
    files = tuple(
        File(name, f"{address}/{name}", hashlib.sha256(text.encode()).hexdigest())
        for name, text in (("train.txt", XC), ("test.txt", TEST))
    )
    entry = Entry(
        "toy", "Toy", "multilabel", 3, 3, 4, 2, "a server", "CC0", "xc", files, prepare="unit rows"
    )
    monkeypatch.setitem(CATALOGUE, "toy", entry)
    return entry


def change(monkeypatch, entry, **changes):
    monkeypatch.setitem(CATALOGUE, "toy", replace(entry, **changes))


def expect_toy(data):
    assert (data.name, data.split) == ("toy", 2)
    np.testing.assert_allclose(data.X.toarray(), [[0, 0.6, 0.8], [1, 0, 0], [0, 0, 1]], atol=1e-7)
    assert data.y.toarray().tolist() == [[1, 0, 0, 1], [0, 0, 0, 0], [0, 0, 1, 0]]


# Entries


def test_the_papers_nine_sets_have_entries():
    rows = {  # m, and n of the whole set or of the test part, as the paper reports them
        "YouTube": (46, 31703),
        "Eurlex-LexGlue": (100, 65000),
        "Mediamill": (101, 43907),
        "Flickr": (195, 80513),
        "RCV1X": (2456, None),
        "AmazonCat": (13330, None),
        "News20": (20, None),
        "Ledgar-LexGlue": (100, None),
        "Caltech-256": (256, None),
    }
    by_paper = {entry.paper: entry for entry in CATALOGUE.values() if entry.paper}
    assert set(by_paper) == set(rows)
    for name, (m, n) in rows.items():
        assert by_paper[name].m == m
        assert n in (None, by_paper[name].n)
    assert by_paper["Mediamill"].n - by_paper["Mediamill"].split == 12914
    assert by_paper["RCV1X"].n - by_paper["RCV1X"].split == 155962
    assert by_paper["News20"].n - by_paper["News20"].split == 7532


def is_folder(path):
    """Whether a dataset was written there."""
    return all((path / name).is_file() for name in ("X.npz", "Y.npz", "meta.json"))


def test_every_paper_set_that_needs_one_has_a_stand_in():
    stood_for = {name for entry in CATALOGUE.values() for name in entry.stands_for}
    assert stood_for == {e.paper for e in CATALOGUE.values() if e.paper} - {"News20"}


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=lambda entry: entry.name)
def test_every_entry_is_whole(entry):
    assert entry.task in ("binary", "multiclass", "multilabel")
    assert entry.title
    assert entry.source
    assert entry.licence
    assert entry.split is None or 0 < entry.split < entry.n
    assert entry.reader in ("folder", "xc", "arff", "csv", *(f"fetch {f}" for f in FETCHED))
    assert len(entry.files) <= 2
    assert (len(entry.files) == 2) <= (entry.split is not None)


FETCHED = loading.FETCHERS


def test_nothing_is_downloaded_unless_asked_for(toy, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"pass download=True to load, or put train.txt"):
        load("toy", folder=tmp_path)
    assert not (tmp_path / "toy").exists()


# Files


def test_files_are_downloaded_prepared_and_kept(toy, tmp_path, monkeypatch):
    expect_toy(load("toy", folder=tmp_path, download=True))
    assert is_folder(tmp_path / "toy")
    meta = json.loads((tmp_path / "toy" / "meta.json").read_text())
    assert (meta["source"], meta["licence"]) == ("a server", "CC0")
    monkeypatch.setattr("omma_study.datasets.loading.download_file", None)
    expect_toy(load("toy", folder=tmp_path))
    expect_toy(load("toy", folder=tmp_path, download=True))


def test_files_put_there_by_hand_are_read(toy, tmp_path):
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "train.txt").write_text(XC)
    (tmp_path / "toy" / "test.txt").write_text(TEST)
    expect_toy(load("toy", folder=tmp_path))
    assert not is_folder(tmp_path / "toy")
    expect_toy(load("toy", folder=tmp_path, download=True))
    assert is_folder(tmp_path / "toy")


def test_members_of_archives_are_unpacked(toy, server, tmp_path, monkeypatch):
    served, address = server
    with tarfile.open(served / "both.tar.gz", "w:gz") as archive:
        for name, text in (("a/train", XC), ("a/test", TEST)):
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    url = f"{address}/both.tar.gz"
    digest = hashlib.sha256((served / "both.tar.gz").read_bytes()).hexdigest()
    files = (File("1.txt", url, digest, "a/train"), File("2.txt", url, digest, "a/test"))
    change(monkeypatch, toy, files=files)
    expect_toy(load("toy", folder=tmp_path, download=True))
    change(monkeypatch, toy, files=(replace(files[0], member="b"), files[1]))
    with pytest.raises(ValueError, match=r"both.tar.gz: expected a file b, got none"):
        load("toy", folder=tmp_path / "again", download=True)


def archive_of(served, **members):
    """Serve an archive of files and links; its SHA-256 is returned."""
    with tarfile.open(served / "evil.tar.gz", "w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
            else:
                info.type, info.linkname = content
                archive.addfile(info)
    return hashlib.sha256((served / "evil.tar.gz").read_bytes()).hexdigest()


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE]
)
def test_only_plain_files_are_unpacked(toy, server, tmp_path, monkeypatch, kind):
    """A link in an archive may lead anywhere, to another member of it at the least."""
    served, address = server
    digest = archive_of(served, other=XC.encode(), train=(kind, "other"))
    file = File("train.txt", f"{address}/evil.tar.gz", digest, "train")
    change(monkeypatch, toy, files=(file, toy.files[1]))
    with pytest.raises(ValueError, match=r"evil.tar.gz: expected a plain file train, got another"):
        load("toy", folder=tmp_path, download=True)
    assert not (tmp_path / "toy" / "train.txt").exists()


def test_a_member_that_is_too_large_is_not_unpacked(toy, server, tmp_path, monkeypatch):
    served, address = server
    digest = archive_of(served, train=b"0" * 5000)
    file = File("train.txt", f"{address}/evil.tar.gz", digest, "train")
    change(monkeypatch, toy, files=(file, toy.files[1]))
    monkeypatch.setattr("omma_study.datasets.loading.LARGEST_MEMBER", 4999)
    with pytest.raises(ValueError, match=r"expected at most 4,999 bytes in train, got 5,000"):
        load("toy", folder=tmp_path, download=True)
    assert not (tmp_path / "toy" / "train.txt").exists()


@pytest.mark.parametrize("name", ["../train.txt", "/etc/passwd", "a/b", "..", "", "a\\b", "c:d"])
def test_files_go_nowhere_but_into_their_folder(name):
    with pytest.raises(ValueError, match=r"name of File must be a plain name"):
        File(name, "https://example.org/a")


@pytest.mark.parametrize("member", ["../train.txt", "/etc/passwd", "a/../../b", "a\\..\\b"])
def test_members_are_named_inside_their_archive(member):
    with pytest.raises(ValueError, match=r"member of File must be a path inside an archive"):
        File("train.txt", "https://example.org/a.tar", "0" * 64, member)


def test_a_hash_is_a_sha256():
    with pytest.raises(ValueError, match=r"sha256 of File must be 64 hexadecimal digits, got 'md5"):
        File("train.txt", "https://example.org/a", "md5:12")


# Files that cannot be verified


def test_a_file_without_a_known_hash_is_not_downloaded(toy, tmp_path, monkeypatch):
    change(monkeypatch, toy, files=(toy.files[0], replace(toy.files[1], sha256=None)))
    with pytest.raises(
        ValueError, match=r"^toy is not downloaded: .* no SHA-256 of test.txt"
    ) as no:
        load("toy", folder=tmp_path, download=True)
    said = str(no.value)
    assert "unverified=True" in said
    assert "put train.txt and test.txt" in said
    assert not (tmp_path / "toy").exists()


def test_whoever_wants_it_unverified_is_told_its_hash(toy, tmp_path, monkeypatch):
    change(monkeypatch, toy, files=(toy.files[0], replace(toy.files[1], sha256=None)))
    with pytest.warns(UserWarning, match=rf"test.txt .* SHA-256 is {toy.files[1].sha256}"):
        expect_toy(load("toy", folder=tmp_path, download=True, unverified=True))
    # By hand is as good.
    home = tmp_path / "by hand" / "toy"
    home.mkdir(parents=True)
    (home / "train.txt").write_text(XC)
    (home / "test.txt").write_text(TEST)
    expect_toy(load("toy", folder=home.parent, download=True))


def test_a_wrong_hash_is_an_error_though_others_go_unverified(toy, tmp_path, monkeypatch):
    files = (replace(toy.files[0], sha256="0" * 64), replace(toy.files[1], sha256=None))
    change(monkeypatch, toy, files=files)
    with pytest.raises(ValueError, match="hash"):
        load("toy", folder=tmp_path, download=True, unverified=True)


@pytest.mark.parametrize(
    "entry", [e for e in CATALOGUE.values() if e.downloadable and e.files], ids=lambda e: e.name
)
def test_addresses_of_the_catalogue_are_pinned_or_refused(entry, tmp_path, monkeypatch):
    monkeypatch.setattr("omma_study.datasets.loading.download_file", None)
    for file in entry.files:
        assert file.url.startswith("https://")
        assert "/HEAD/" not in file.url or file.sha256 is None
    if any(file.sha256 is None for file in entry.files):
        with pytest.raises(ValueError, match=f"^{entry.name} is not downloaded: .* no SHA-256 of"):
            load(entry.name, folder=tmp_path, download=True)


def test_a_bar_shows_where_there_is_a_terminal(toy, tmp_path, monkeypatch, capsys):
    pytest.importorskip("tqdm")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    load("toy", folder=tmp_path, download=True)
    assert "%" in capsys.readouterr().err


def test_nothing_is_said_where_there_is_none(toy, tmp_path, capsys):
    load("toy", folder=tmp_path, download=True)
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")


def test_a_wrong_hash_is_an_error_and_nothing_is_kept(toy, tmp_path, monkeypatch):
    first = replace(toy.files[0], sha256="0" * 64)
    change(monkeypatch, toy, files=(first, toy.files[1]))
    with pytest.raises(ValueError, match="hash"):
        load("toy", folder=tmp_path, download=True)
    assert not (tmp_path / "toy" / "train.txt").exists()


@pytest.mark.parametrize("how", ["missing", "no server"])
def test_offline_is_one_sentence(toy, tmp_path, monkeypatch, how):
    url = toy.files[0].url + "x" if how == "missing" else "http://127.0.0.1:9/train.txt"
    change(monkeypatch, toy, files=(replace(toy.files[0], url=url), toy.files[1]))
    with pytest.raises(OSError, match=r"^toy could not be had from http://127") as caught:
        load("toy", folder=tmp_path, download=True)
    said = str(caught.value)
    assert "train.txt and test.txt" in said
    assert "OMMA_DATA" in said
    assert "\n" not in said


def test_sets_without_an_address_say_what_to_do(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"youtube cannot be downloaded.*DeepWalk"):
        load("youtube", folder=tmp_path, download=True)
    with pytest.raises(FileNotFoundError, match=r"put train.txt and test.txt, or X.npz"):
        load("amazoncat", folder=tmp_path)


def test_numbers_that_changed_are_a_warning(toy, tmp_path, monkeypatch):
    change(monkeypatch, toy, n=17)
    with pytest.warns(UserWarning, match="n of toy is 17 in the catalogue, got 3"):
        load("toy", folder=tmp_path, download=True)


# scikit-learn


def fake(monkeypatch, **fetchers):
    """Put functions where scikit-learn has its own."""
    import sklearn.datasets

    for name, fetcher in fetchers.items():
        monkeypatch.setattr(sklearn.datasets, name, fetcher)


@pytest.mark.filterwarnings("ignore:.*in the catalogue, got")
def test_news20_is_tfidf_of_the_training_words(monkeypatch, tmp_path):
    texts = {"train": ["alpha beta"] * 3 + ["alpha gamma"] * 3, "test": ["alpha delta gamma"]}

    def fetch(subset, shuffle, random_state):
        ids = np.array([0, 0, 0, 1, 1, 1] if subset == "train" else [1])
        return types.SimpleNamespace(data=texts[subset], target=ids, target_names=["a", "b"])

    fake(monkeypatch, fetch_20newsgroups=fetch)
    data = load("news20", folder=tmp_path, download=True)
    assert (data.n, data.d, data.split, data.labels) == (7, 3, 6, ("a", "b"))
    np.testing.assert_allclose(data.X.multiply(data.X).sum(axis=1), 1, rtol=1e-6)
    assert data.X.toarray()[6, 1] == 0
    assert load("news20", folder=tmp_path).n == 7


@pytest.mark.filterwarnings("ignore:.*in the catalogue, got")
def test_covtype_is_scaled(monkeypatch, tmp_path):
    X = np.array([[1.0, 5, 7], [3, 5, 9], [2, 5, 7]])
    fake(monkeypatch, fetch_covtype=lambda return_X_y: (X, np.array([1, 7, 2], np.int32)))
    data = load("covtype", folder=tmp_path, download=True)
    assert data.X.tolist() == [[0, 0, 0], [1, 0, 1], [0.5, 0, 0]]
    assert (data.y.tolist(), data.m, data.labels[6]) == ([0, 6, 1], 7, "Krummholz")


@pytest.mark.filterwarnings("ignore:.*in the catalogue, got")
def test_kddcup99_is_numbers_and_indicators_without_duplicates(monkeypatch, tmp_path):
    rows = [
        [0, b"tcp", b"http", b"SF", np.e - 1, 0],
        [0, b"tcp", b"http", b"SF", np.e - 1, 0],
        [3, b"udp", b"http", b"SF", np.e**2 - 1, 0],
    ]
    attacks = np.array([b"normal.", b"normal.", b"back."], dtype=object)
    fake(
        monkeypatch,
        fetch_kddcup99=lambda percent10, return_X_y: (np.array(rows, dtype=object), attacks),
    )
    data = load("kddcup99", folder=tmp_path, download=True)
    np.testing.assert_allclose(
        data.X.toarray(), [[0, 0.5, 1, 0, 1, 1], [1, 1, 0, 1, 1, 1]], rtol=1e-6
    )
    assert (data.y.tolist(), data.labels) == ([1, 0], ("back", "normal"))


@pytest.mark.filterwarnings("ignore:.*in the catalogue, got")
def test_rcv1_is_taken_as_it_is(monkeypatch, tmp_path):
    X, Y = sparse.csr_matrix((23160, 4)), sparse.csr_matrix((23160, 3))
    bunch = types.SimpleNamespace(data=X, target=Y, target_names=np.array(["a", "b", "c"]))
    fake(monkeypatch, fetch_rcv1=lambda subset: bunch)
    data = load("rcv1", folder=tmp_path, download=True)
    assert (data.m, data.split, data.labels) == (3, 23149, ("a", "b", "c"))


def test_scikit_learn_offline_is_one_sentence(monkeypatch, tmp_path):
    def fetch(return_X_y):
        raise OSError("<urlopen error no name>")

    fake(monkeypatch, fetch_covtype=fetch)
    with pytest.raises(
        OSError, match=r"^covtype could not be had from scikit-learn, fetch_covtype .*OMMA_DATA"
    ):
        load("covtype", folder=tmp_path, download=True)


def test_delicious_becomes_sparse(tmp_path, monkeypatch):
    small = replace(CATALOGUE["delicious"], n=2, d=2, m=2, split=1, options={"labels": -2})
    monkeypatch.setitem(CATALOGUE, "delicious", small)
    (tmp_path / "delicious").mkdir()
    head = "@relation r\n" + "".join(f"@attribute a{j} {{0,1}}\n" for j in range(4)) + "@data\n"
    for file, row in zip(small.files, ("0,1,1,0", "0,0,0,1"), strict=True):
        (tmp_path / "delicious" / file.name).write_text(head + row)
    data = load("delicious", folder=tmp_path)
    assert sparse.issparse(data.X)
    assert data.X.toarray().tolist() == [[0, 1], [0, 0]]
    assert data.y.toarray().tolist() == [[1, 0], [0, 1]]


# Real data, written in the format of its provider


def test_a_real_set_survives_the_format_of_its_provider(tmp_path):
    whole = load("yeast", folder=require("yeast"))
    home = tmp_path / "yeast"
    home.mkdir()
    head = [f"@attribute Att{j} numeric" for j in range(whole.d)]
    head += [f"@attribute {name} {{0,1}}" for name in whole.labels]
    for file, part in zip(CATALOGUE["yeast"].files, whole.parts(), strict=True):
        rows = [
            ",".join(map(repr, x)) + "," + ",".join(map(str, y))
            for x, y in zip(part.X.tolist(), part.y.toarray().tolist(), strict=True)
        ]
        (home / file.name).write_text("\n".join(["@relation yeast", *head, "@data", *rows]))
    got = load("yeast", folder=tmp_path)
    np.testing.assert_array_equal(got.X, whole.X)
    assert (got.y != whole.y).nnz == 0
    assert got.labels == whole.labels


def test_mammography_is_shuffled_the_same_every_time(tmp_path):
    path = tmp_path / "mammography" / "mammography.csv"
    path.parent.mkdir()
    path.write_text("".join(f"{j},{j},0,0,0,1,'{-1 if j % 40 else 1}'\n" for j in range(11183)))
    data = load("mammography", folder=tmp_path)
    assert (data.d, data.task, data.labels) == (6, "binary", ("-1", "1"))
    np.testing.assert_array_equal(
        data.X[:, 0], np.random.default_rng(0).permutation(11183).astype(np.float32)
    )
    np.testing.assert_array_equal(data.y, data.X[:, 0] % 40 == 0)
    assert read(path, header=False).y[:2].tolist() == [1, 0]


def ten_rows():
    return Dataset("toy", "multiclass", np.arange(20.0).reshape(10, 2), np.arange(10) % 3)


def test_folders_are_loaded_by_name_and_by_path(tmp_path):
    write_folder(ten_rows(), tmp_path / "toy")
    assert load("toy", folder=tmp_path).n == load(tmp_path / "toy").n == 10


def test_load_says_what_to_set(monkeypatch, tmp_path):
    monkeypatch.delenv("OMMA_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=r"OMMA_DATA to it, or pass folder="):
        load("yeast")
    with pytest.raises(FileNotFoundError, match=r"yeast does not hold yeast"):
        load("yeast", folder=tmp_path)
    with pytest.raises(ValueError, match=r"'yest'.*did you mean 'yeast'"):
        load("yest")


def test_the_environment_names_the_folder(monkeypatch, tmp_path):
    write_folder(ten_rows(), tmp_path / "mine")
    monkeypatch.setenv("OMMA_DATA", str(tmp_path))
    assert load("mine").n == 10


def test_real_sets_are_as_the_catalogue_says():
    folder = require()
    seen = [name for name in CATALOGUE if (folder / name / "meta.json").is_file()]
    assert seen
    for name in seen:
        entry, got = CATALOGUE[name], load(name, folder=folder)
        assert (got.name, got.task, got.n, got.d, got.m, got.split) == (
            entry.name,
            entry.task,
            entry.n,
            entry.d,
            entry.m,
            entry.split,
        )
        train, test = got.parts()
        assert train.n + test.n == got.n
