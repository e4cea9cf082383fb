"""The alternative annotator test, and an independent one on published answers."""

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.special import stdtr

from skactive.estimation import AlternativeTest, alternative_annotator_test

DATA = Path(os.environ.get("SKACTIVE_DATA", "")) / "alttest"
TASKS = {
    "10k_prompts": "distance",
    "cebab_aspects": "accuracy",
    "cebab_stars": "distance",
}


def published_test(people, machine, epsilon, is_number):
    """Return verdicts by the procedure of the paper, written out item by item.

    `people` and `machine` are as in their files: {annotator: {item: answer}}.
    """
    p_values, advantages, counted = [], [], {}
    for left_out, own in people.items():
        differences, wins = [], []
        for item, answer in own.items():
            rest = [
                given[item]
                for name, given in people.items()
                if name != left_out and item in given
            ]
            if not rest or item not in machine:
                continue
            if is_number:
                s_machine = -sum((machine[item] - r) ** 2 for r in rest) / len(rest)
                s_person = -sum((answer - r) ** 2 for r in rest) / len(rest)
            else:
                s_machine = rest.count(machine[item]) / len(rest)
                s_person = rest.count(answer) / len(rest)
            machine_wins = 1 if s_machine >= s_person else 0
            person_wins = 1 if s_person >= s_machine else 0
            differences.append(person_wins - machine_wins)
            wins.append(machine_wins)
        n = len(differences)
        if n < 30:
            continue
        counted[left_out] = n
        mean = sum(differences) / n
        variance = sum((d - mean) ** 2 for d in differences) / (n - 1)
        t = (mean - epsilon) / math.sqrt(variance / n)
        p_values.append(stdtr(n - 1, t))
        advantages.append(sum(wins) / n)
    # Benjamini and Yekutieli: the largest k with p(k) <= k alpha / (m (1 + ... + 1/m)).
    m, order = len(p_values), sorted(p_values)
    harmonic = sum(1 / i for i in range(1, m + 1))
    passed = [k for k in range(1, m + 1) if order[k - 1] <= k * 0.05 / (m * harmonic)]
    rate = max(passed, default=0) / m
    return rate, sum(advantages) / m, counted


@pytest.mark.slow
@pytest.mark.skipif(not DATA.exists(), reason="needs the shared data")
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("epsilon", [0.1, 0.2])
def test_oracle_published_answers(task, epsilon):
    people = json.loads((DATA / f"{task}_human.json").read_text())
    machines = json.loads((DATA / f"{task}_llm.json").read_text())
    answers = {}
    for name, given in people.items():
        for item, answer in given.items():
            answers.setdefault(item, {})[name] = answer
    verdicts = set()
    for machine in machines.values():
        found = alternative_annotator_test(
            answers, machine, epsilon=epsilon, measure=TASKS[task]
        )
        expected = published_test(people, machine, epsilon, TASKS[task] == "distance")
        rate, advantage, counted = expected
        assert found.winning_rate == pytest.approx(rate)
        assert found.advantage == pytest.approx(advantage)
        assert found.n_items == counted
        assert (found.verdict == "yes") == (rate >= 0.5)
        verdicts.add(found.verdict)
    assert verdicts <= {"yes", "no", "cannot tell"}


def make(n, errors, seed=0):
    """Return true labels, and answers of three people who err with these rates."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n)
    people = [
        np.where(rng.random(n) < rate, (truth + rng.integers(1, 3, size=n)) % 3, truth)
        for rate in errors
    ]
    answers = {i: {j: int(one[i]) for j, one in enumerate(people)} for i in range(n)}
    return truth, answers


def test_a_good_machine_may_replace_people_and_a_bad_one_not():
    truth, answers = make(300, [0.1, 0.1, 0.1])
    right = alternative_annotator_test(answers, dict(enumerate(truth.tolist())))
    assert right.verdict == "yes"
    assert right.winning_rate == 1
    assert str(right).startswith("yes: as good as 100 % of 3 people; it agrees")
    wrong = dict(enumerate(((truth + 1) % 3).tolist()))
    found = alternative_annotator_test(answers, wrong)
    assert (found.verdict, found.winning_rate) == ("no", 0)


def test_few_people_or_items_cannot_tell():
    truth, answers = make(300, [0.1, 0.1, 0.1])
    machine = dict(enumerate(truth.tolist()))
    two = {i: {j: given[j] for j in (0, 1)} for i, given in answers.items()}
    for people, answered in (
        (two, machine),
        (answers, dict(list(machine.items())[:29])),
        ({i: {0: 1} for i in range(50)}, machine),
    ):
        found = alternative_annotator_test(people, answered)
        assert found.verdict == "cannot tell"
        assert found.winning_rate is None
        assert "three people with 30 common items" in str(found)
    # No answer is none.
    none = dict.fromkeys(machine) | dict(list(machine.items())[:40])
    assert set(alternative_annotator_test(answers, none).n_items.values()) == {40}


def test_people_who_always_agree_need_no_variance():
    answers = {i: dict.fromkeys("abc", i % 2) for i in range(40)}
    same = alternative_annotator_test(answers, {i: i % 2 for i in range(40)})
    assert (same.verdict, same.advantage) == ("yes", 1)
    other = alternative_annotator_test(answers, {i: 1 - i % 2 for i in range(40)})
    assert (other.verdict, other.advantage) == ("no", 0)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"epsilon": 1.5}, "'epsilon' must be from 0 to below 1, got 1.5"),
        ({"alpha": -1}, "'alpha' must be from 0 to below 1, got -1"),
        ({"min_items": 1}, "'min_items' must be"),
        ({"measure": "kappa"}, "'measure' must be"),
    ],
)
def test_bad_input(params, match):
    with pytest.raises(ValueError, match=match):
        alternative_annotator_test({}, {}, **params)
    assert AlternativeTest("cannot tell").p_values == {}
