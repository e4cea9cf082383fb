"""Count the keys that a person who knows all classes presses on the labeling page.

The texts of Banking77 (77 classes) are labeled with the recommended model, which is
trained again after every five labels, as `skactive label` does. `1` to `9` answer with
the nine most likely classes of a text, or with the last ones while the model knows
fewer. Otherwise the name is typed until the class is first in the list, and Enter takes
it; or until it is among the first nine, and its digit does ("digits of the list"). With
`--classes 151`, 74 other intents of assistants, which never apply, are classes as well.

    SKACTIVE_DATA=.../data python benchmarks/keys_per_answer.py --texts 150 --seeds 3
    python benchmarks/keys_per_answer.py --smoke    # invented texts, for CI
"""

import argparse
import json
from pathlib import Path

import numpy as np

NEAR = 9  # classes with a digit
OTHERS = (
    "accept_reservations account_blocked alarm application_status are_you_a_bot "
    "bill_balance bill_due book_flight book_hotel calculator calendar "
    "calendar_update cancel cancel_reservation car_rental carry_on change_accent "
    "change_language change_speed change_user_name change_volume cook_time "
    "credit_limit credit_score damaged_card date definition direct_deposit "
    "directions distance do_you_have_pets exchange_gas find_phone flight_status "
    "flip_coin food_last freeze_account fun_fact gas gas_type goodbye greeting "
    "how_busy how_old_are_you improve_credit_score income ingredient_substitution "
    "ingredients_list insurance insurance_change interest_rate international_fees "
    "international_visa jump_start last_maintenance lost_luggage make_call maybe "
    "meal_suggestion meaning_of_life measurement_conversion meeting_schedule "
    "min_payment mpg new_card next_holiday next_song nutrition_info oil_change_how "
    "oos order order_status pay_bill pto_balance "
)


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

    estimator = make_text_classifier(packaged_model())
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


def main():
    """Print the keys per answer."""
    import os

    import pandas as pd

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=int, default=150)
    parser.add_argument("--pool", type=int, default=1500)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--classes", type=int, choices=[77, 151], default=77)
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    if options.smoke:
        options.texts, options.pool = 10, 60
    else:
        file = Path(os.environ["SKACTIVE_DATA"], "banking77", "train.parquet")
        table = pd.read_parquet(file)
    about = json.loads(Path(__file__).with_name("descriptions.json").read_text())
    names = sorted(about["banking77"])
    if options.smoke:
        codes = np.arange(2 * len(names)) % len(names)
        table = pd.DataFrame({"text": [f"{names[i]}?" for i in codes], "label": codes})
    for describe in (False, True):
        found = []
        for seed in range(options.seeds):
            frame = table.sample(options.pool, random_state=seed)
            truth = [names[code] for code in frame["label"]]
            every = (
                names if options.classes == 77 else sorted([*names, *OTHERS.split()])
            )
            texts = frame["text"].tolist()
            found.append(label(texts, truth, every, options.texts, seed, describe))
        keys = np.concatenate(found)
        print(
            f"{len(every)} classes, names {'known' if describe else 'unknown'} to the "
            f"model: {keys[:, 0].mean():.2f} keys with Enter, {keys[:, 1].mean():.2f} "
            f"with digits of the list; {np.mean(keys[:, 0] == 1):.0%} among the nine"
        )


if __name__ == "__main__":
    main()
