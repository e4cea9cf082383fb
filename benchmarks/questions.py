"""Several questions of each text at once, against one question after another.

Each data set has two columns of labels, and so two questions. In "at once", the queries
of the two models alternate, five texts at a time, and both questions of a text are
answered: half of the answers to a question are to texts that the other model chose. In
"one by one", each model chooses its own texts. "random" has random texts. Models are a
logistic regression on frozen features of MiniLM with `uherding`. Run from the
repository:

    python benchmarks/questions.py --out FOLDER

SKACTIVE_DATA is the folder of the data sets:

- trec: the kind of question (6 classes) and the finer kind (the 47 with two questions)
- goemotions: the emotion of comments that have one (28), and its tone (positive,
  negative, ambiguous, neutral), by the groups that the authors published
- disaster_tweets: whether a disaster is meant (2), and the kind of event of the keyword
  (fire, weather, crash, violence, other), by words that stand below

Finished runs are kept in --out, a line each, and are not run again. The accuracy is
that on texts outside the pool. A person reads n texts for n answers to both questions
at once, and up to 2 n texts one by one.

Options:
    --out FOLDER
    --sets trec goemotions disaster_tweets
    --seeds 10
    --pool 1500
    --test 1000
    --counts 25 50 100 150
Smoke: --sets docstrings --seeds 1 --pool 120 --test 40 --counts 10 20
"""

import os
from pathlib import Path

import numpy as np
import pandas as pd
from _harness import Records, minilm, parse
from scipy.stats import t as student
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from skactive import ActiveLearner
from skactive.bert import BertFeatures
from skactive.datasets import load_docstrings

BATCH = 5
WAYS = ("at once", "one by one", "random")
POSITIVE = (0, 1, 4, 5, 8, 13, 15, 17, 18, 20, 21, 23)
NEGATIVE = (2, 3, 9, 10, 11, 12, 14, 16, 19, 24, 25)
EVENTS = {
    "fire": "fire burn blaz smok arson",
    "weather": "flood storm hurric tornado wind hail light thunder typhoon cyclon rain "
    "snow bliz sand dust mud land aval sink earthq seism volc lava tsunami drought "
    "heat",
    "crash": "crash wreck derail collid collis explo deton sunk sinking bridge collaps "
    "structural nuclear chemical",
    "violence": "attack bomb terror hijack hostage murder kill riot suicid gun armed "
    "war weapon loot massac bioterror",
}


def read(name):
    """Return texts, and a dict of question to codes (n,)."""
    if name == "docstrings":
        texts, y = load_docstrings(max_per_library=60, return_X_y=True)
        return texts, {"library": y, "length": [len(x) > 120 for x in texts]}
    table = pd.read_parquet(Path(os.environ["SKACTIVE_DATA"], name, "train.parquet"))
    table = table.drop_duplicates("text")
    if name == "trec":
        often = table["label_fine"].map(table["label_fine"].value_counts()) > 1
        table = table[often]
        return table["text"], {"kind": table["label"], "finer": table["label_fine"]}
    if name == "goemotions":
        table = table[table["label"].map(len) == 1]
        emotion = table["label"].map(lambda codes: int(codes[0]))
        known = [emotion.isin(POSITIVE), emotion.isin(NEGATIVE), emotion == 27]
        tone = np.select(known, [0, 1, 2], 3)
        return table["text"], {"emotion": emotion, "tone": tone}
    kinds = list(map(find_event, table["keyword"].fillna("")))
    return table["text"], {"disaster": table["label"], "event": kinds}


def find_event(keyword):
    """Return the kind of event of a keyword, "-" for others."""
    for event, words in EVENTS.items():
        if any(word in keyword for word in words.split()):
            return event
    return "-"


def play(way, X, answers, X_test, tests, seed, args):
    """Return the accuracy by question and count of labels."""
    learners = {
        question: ActiveLearner(
            LogisticRegression(C=10, max_iter=1000), "uherding", random_state=seed
        )
        for question in answers
    }
    labeled = {question: [] for question in answers}
    order = np.random.default_rng(seed).permutation(len(X)).tolist()
    scores = {question: {} for question in answers}
    most, turn = max(args.counts), 0
    while any(len(rows) < most for rows in labeled.values()):
        asks = list(answers)[turn % len(answers)]
        turn += 1
        before = labeled[asks]
        if way == "random" or len(before) < 2 * BATCH:  # both ways begin alike
            picks = order[len(before) : len(before) + BATCH]
        else:
            rest = np.setdiff1d(np.arange(len(X)), before)
            picks = rest[learners[asks].query(X[rest], BATCH)].tolist()
        for question in answers if way == "at once" else [asks]:
            labeled[question] = [*labeled[question], *picks]
            rows = labeled[question]
            y = answers[question][rows]
            is_trained = len(set(y.tolist())) > 1
            if is_trained:
                learners[question].fit(X[rows], y)
            if len(rows) in args.counts:
                guess = learners[question].predict(X_test) if is_trained else y[0]
                scores[question][str(len(rows))] = float(
                    np.mean(guess == tests[question])
                )
    return scores


def run(name, seed, args):
    """Return the record of a data set and a seed."""
    texts, answers = read(name)
    rng = np.random.default_rng([seed, 56])
    rows = rng.permutation(len(texts))[: args.pool + args.test]
    texts = np.asarray(texts, dtype=object)[rows].tolist()
    features = BertFeatures(minilm(), max_length=64, cache=args.out / "features")
    X = features.fit_transform(texts)
    codes = {
        question: np.unique(np.asarray(y), return_inverse=True)[1][rows]
        for question, y in answers.items()
    }
    pool, test = slice(None, args.pool), slice(args.pool, None)
    parts = ({x: y[part] for x, y in codes.items()} for part in (pool, test))
    answers, tests = parts
    record = {"set": name, "seed": seed}
    for way in WAYS:
        record[way] = play(way, X[pool], answers, X[test], tests, seed, args)
    return record


def show(records):
    """Print means over the seeds, and paired differences with 95 % intervals."""
    for name in dict.fromkeys(record["set"] for record in records):
        own = [record for record in records if record["set"] == name]
        for question in own[0][WAYS[0]]:
            for count in own[0][WAYS[0]][question]:
                values = {
                    way: 100 * np.array([r[way][question][count] for r in own])
                    for way in WAYS
                }
                line = ", ".join(f"{way} {x.mean():.1f}" for way, x in values.items())
                gain = values["at once"] - values["one by one"]
                half = np.nan
                if len(gain) > 1:
                    half = student.ppf(0.975, len(gain) - 1) * gain.std(ddof=1)
                    half /= np.sqrt(len(gain))
                print(
                    f"{name}, {question}, {count} labels: {line}; at once less one by "
                    f"one {gain.mean():+.1f} ± {half:.1f}"
                )


def main():
    """Run the benchmark."""
    args = parse(__doc__, out=Path("benchmark-features/questions"))
    records = Records(args.out / f"questions{'_smoke' * args.smoke}.jsonl")
    jobs = [(name, seed) for seed in range(args.seeds) for name in args.sets]
    with threadpool_limits(limits=1):
        records.run(lambda *job: run(*job, args), records.missing(jobs, "set", "seed"))
    show(records)


if __name__ == "__main__":
    main()
