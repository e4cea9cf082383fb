"""Count the keys that a person who knows all classes presses on the labeling page.

The texts of Banking77 (77 classes) are labeled with the recommended model, which is
trained again after every five labels, as `skactive label` does. `1` to `9` answer with
the nine most likely classes of a text, or with the last ones while the model knows
fewer. Otherwise the name is typed until the class is first in the list, and Enter takes
it; or until it is among the first nine, and its digit does ("digits of the list"). With
`--classes 151`, 74 other intents of assistants, which never apply, are classes as well.

    SKACTIVE_DATA=.../data python benchmarks/keys_per_answer.py --texts 150 --seeds 3
    python benchmarks/keys_per_answer.py --smoke    # invented texts, for CI

Options:
    --texts 150
    --pool 1500
    --seeds 1
    --classes {77,151}
Smoke: --texts 10 --pool 60
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
from _harness import data_path, parse, print_rows

NEAR = 9  # classes with a digit
INTENTS = Path(__file__).with_name("other_intents.txt")


def plain(name):
    """Return a name as the search of the page sees it."""
    return name.lower().replace("_", " ").replace("-", " ").replace("/", " ")


def search(typed, names, order):
    """Return the places of the names that hold all typed words, best first."""
    words = plain(typed).split()
    found = []
    for place, name in enumerate(names):
        text = plain(name)
        if not all(word in text for word in words):
            continue
        begins = all(f" {word}" in f" {text}" for word in words)
        tier = 0 if text == " ".join(words) else 1 if begins else 2
        found.append((tier, order.get(name, len(names)), place))
    return [place for *_, place in sorted(found)]


def count_keys(name, names, likely, used):
    """Return the keys with Enter only, and with the digits of the list."""
    near = list(dict.fromkeys([*likely[:NEAR], *used]))[:NEAR]
    if name in near:
        return 1, 1
    order = {one: i for i, one in enumerate(dict.fromkeys([*likely, *used]))}
    keys = [None, None]
    for n in range(1, len(name) + 1):
        found = [names[i] for i in search(name[:n], names, order)]
        if keys[1] is None and name in found[:NEAR]:
            keys[1] = n + 1
        if found[:1] == [name]:
            keys[0] = n + 1
            break
    return keys[0] or len(name) + 1, keys[1] or len(name) + 1


def label(texts, truth, names, n, seed, describe):
    """Label n texts; return the keys of each answer, (n, 2)."""
    from skactive import ActiveLearner, ClassDescriptions, make_text_classifier
    from skactive.semi_supervised import packaged_model

    estimator = make_text_classifier(packaged_model(), adapt=False)
    if describe:
        estimator = ClassDescriptions(estimator, dict.fromkeys(names, ""))
    learner = ActiveLearner(estimator, batch_size=5, random_state=seed)
    if describe:
        learner.fit([], [], X_unlabeled=texts)
    free, used, keys = np.ones(len(texts), dtype=bool), [], []
    while len(keys) < n:
        ask = learner.query(texts, candidates=free)
        known = hasattr(learner, "estimator_") and len(learner.classes_) > 1
        batch = [texts[i] for i in ask]
        proba = learner.predict_proba(batch) if known else np.empty((len(batch), 0))
        for i, row in zip(ask, proba, strict=True):
            likely = [str(learner.classes_[j]) for j in np.argsort(-row)]
            keys.append(count_keys(truth[i], names, likely, used))
            used = list(dict.fromkeys([truth[i], *used]))
        free[ask] = False
        learner.teach(batch, [truth[i] for i in ask], X_unlabeled=texts)
    return np.array(keys[:n])


def list_rows(args, table, names):
    """Yield a row for a model that does not know the names, and one that does."""
    every = names
    if args.classes == 151:
        every = sorted([*names, *INTENTS.read_text("utf-8").split()])
    for describe in (False, True):
        found = []
        for seed in range(args.seeds):
            frame = table.sample(args.pool, random_state=seed)
            truth = [names[code] for code in frame["label"]]
            texts = frame["text"].tolist()
            found.append(label(texts, truth, every, args.texts, seed, describe))
        enter, digits = np.concatenate(found).T
        yield (
            f"{len(every)}|{'yes' if describe else 'no'}|{enter.mean():.2f}|"
            f"{digits.mean():.2f}|{np.mean(enter == 1):.0%}"
        )


def main():
    """Print the keys per answer."""
    args = parse(__doc__)
    about = json.loads(Path(__file__).with_name("descriptions.json").read_text())
    names = sorted(about["banking77"])
    if args.smoke:
        codes = np.arange(2 * len(names)) % len(names)
        table = pd.DataFrame({"text": [f"{names[i]}?" for i in codes], "label": codes})
    else:
        table = pd.read_parquet(data_path("banking77", "train"))
    head = "classes|names known|keys with Enter|with digits of the list|among the nine"
    print_rows(head, list_rows(args, table, names))


if __name__ == "__main__":
    main()
