"""Serve the page of a session in a process of its own, which a test can kill."""

import json
import sys
from pathlib import Path

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner, LabelingSession
from skactive.labeling._server import serve
from skactive.session import Desk


def main(folder, port, token):
    texts = json.loads(Path(folder, "texts.json").read_text(encoding="utf-8"))
    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    learner = ActiveLearner(model, batch_size=5, random_state=0)
    session = LabelingSession(
        learner,
        texts,
        Path(folder, "session"),
        refit="background",
        classes=["disaster", "other"],
    )
    with session, Desk(session, n_labels=200) as desk:
        serve(desk, port=int(port), token=token, open_browser=False)
        session.export(Path(folder, "labels.csv"))


if __name__ == "__main__":
    main(*sys.argv[1:])
