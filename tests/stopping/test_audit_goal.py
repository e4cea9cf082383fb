"""Goals of a session: intervals from its audit that are narrow enough."""

import math
import re

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner, LabelingSession
from skactive.estimation import MeanEstimate, plan_labels
from skactive.simulation import Run
from skactive.stopping import AuditGoal, LabelBudget
from skactive.stopping._records import _read_goal

N = 300
NAMES = np.array(["bug", "praise"])[np.random.default_rng(0).integers(2, size=N)]
TEXTS = [f"{'crash' if x == 'bug' else 'nice'} {i % 7}" for i, x in enumerate(NAMES)]


@pytest.fixture
def open_session(tmp_path):
    opened = []

    def open_session(model=None, **options):
        model = make_pipeline(TfidfVectorizer(), model or LogisticRegression())
        learner = ActiveLearner(model, "random", batch_size=20, random_state=0)
        texts = [f"{text} of {i}" for i, text in enumerate(TEXTS)]
        options = {"audit_every": 2, **options}
        opened.append(LabelingSession(learner, texts, tmp_path / "s", **options))
        return opened[0]

    yield open_session
    for session in opened:
        session.close()


def label(session, answer=lambda id: str(NAMES[id])):
    ids = session.ask().ids
    session.tell(ids, [answer(id) for id in ids])


def test_the_loop_ends_when_every_share_is_exact_enough(open_session):
    session, rule = open_session(), AuditGoal("shares:9") | LabelBudget(N)
    rule.start()
    expected = []
    while not rule.check(session.run, session.learner, TEXTS):
        label(session)
        shares = session.prevalence().estimates.values()
        expected.append(max(x.half_width for x in shares))
    goal = dict(rule.rules_)["audit_goal"]
    assert goal.half_widths_ == [math.inf, *expected]
    assert expected[-1] <= 0.09 < min(expected[:-1])
    assert rule.reason() == "AuditGoal(until='shares:9')"


@pytest.mark.parametrize(
    ("goal", "find"),
    [
        ("accuracy:5", lambda quality: quality.accuracy),
        ("f1:5", lambda quality: quality.macro_f1),
        ("f1:bug:5", lambda quality: quality.classes["bug"].f1),
    ],
)
def test_a_score_is_that_of_the_session(open_session, goal, find):
    session, rule = open_session(), AuditGoal(goal).start()
    assert not rule.check(session.run, session.learner, TEXTS)
    for _ in range(4):
        label(session)
    stop = rule.check(session.run, session.learner, TEXTS)
    width = find(session.quality()).half_width
    assert rule.half_widths_ == [math.inf, width]
    assert stop == (width <= 0.05)


def test_labels_of_one_class_reach_no_goal_of_a_score(open_session):
    session = open_session(classes=["bug", "praise"])
    label(session, lambda id: "bug")
    assert AuditGoal("f1:bug:40").find_widest(session) is None


def test_several_classes_per_text_have_goals(open_session):
    session = open_session(OneVsRestClassifier(LogisticRegression()), multi_label=True)
    for _ in range(4):
        label(session, lambda id: [str(NAMES[id])] + ["odd"] * (id % 2))
    found = AuditGoal("shares:5").find_widest(session)
    assert found == max(
        session.prevalence().estimates.values(), key=lambda x: x.half_width
    )
    f1 = session.quality().classes["odd"].f1
    assert AuditGoal("f1:odd:5").find_widest(session) == f1


@pytest.mark.parametrize(
    "goal", ["", "shares", "shares:0", "shares:bug:3", "f1:bug:60"]
)
def test_a_goal_has_a_form(goal):
    with pytest.raises(ValueError, match=r"'until' must be 'shares:3', 'accuracy:5'"):
        AuditGoal(goal).start()


def test_a_name_can_have_colons():
    assert _read_goal("f1:a:b:2.5") == ("f1", "a:b", 0.025)


def test_a_goal_needs_an_audit_and_classes(open_session):
    with pytest.raises(TypeError, match="needs the run of a LabelingSession"):
        AuditGoal("shares:3").check(Run([{"queried": [0]}]), None, TEXTS)
    session = open_session(classes=["bug", "praise"], audit_every=None)
    with pytest.raises(ValueError, match="needs a session with an audit"):
        AuditGoal("shares:3").find_widest(session)


def test_a_goal_names_a_class_of_the_session(open_session):
    session = open_session(classes=["bug", "praise"])
    with pytest.raises(ValueError, match=r"one of \['bug', 'praise'\], got 'bugs'"):
        AuditGoal("f1:bugs:3").find_widest(session)


def test_numbers_have_no_goal(open_session):
    with pytest.raises(ValueError, match="scores of classes, got a session of"):
        AuditGoal("shares:3").find_widest(open_session(Ridge()))


@pytest.mark.parametrize(("n", "n_pool"), [(40, 2000), (150, 400), (400, 100_000)])
def test_the_labels_that_are_missing_are_those_of_the_variance(n, n_pool):
    # By search: the first sample whose standard error is small enough.
    def half_width(size):
        return 1.96 * math.sqrt(0.21 * (1 / size - 1 / n_pool))

    sizes = range(n + 1, n_pool + 1)
    wanted = next(size for size in sizes if half_width(size) <= 0.03 + 1e-12)
    width = half_width(n)
    found = MeanEstimate(0.3, (0.3 - width, 0.3 + width), n, n_pool)
    expected = f"about {wanted - n:,} more answers: accuracy within 3 points"
    assert AuditGoal("accuracy:3").describe(found, n) == expected
    assert AuditGoal("f1:bug:40").describe(found, n) == (
        "goal reached: F1 of bug within 40 points"
    )
    assert "too few texts" in AuditGoal("f1:5").describe(None, 0)


@pytest.mark.parametrize("every", [1, 10])
def test_the_goal_is_said_in_answers_before_and_after_an_estimate(every):
    goal, pool = AuditGoal("shares:5"), 20_000
    drawn = "" if every == 1 else ", one in 10 drawn at random"
    said = f"more answers{drawn}: each share within 5 points"
    n = plan_labels(0.05, n_pool=pool) - 4
    unknown = MeanEstimate(None, None, 4, pool)
    assert goal.describe(unknown, 4, every) == f"at most about {n * every:,} {said}"
    found = MeanEstimate(0.3, (0.2, 0.4), 80, pool)
    least = int(re.search(r"\d+", goal.describe(found, 80))[0])
    assert goal.describe(found, 80, every, 30) == f"about {least * every - 30:,} {said}"
    assert goal.describe(found, 80, every, 10**6) == f"about 1 {said}"


def test_the_goal_needs_no_more_answers_than_there_are_texts():
    unknown = MeanEstimate(None, None, 12, 300)
    said = AuditGoal("shares:5").describe(unknown, 12, 10, 3)
    assert said.startswith("at most about 285 more answers")
