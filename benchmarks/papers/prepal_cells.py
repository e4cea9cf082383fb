"""The runs of prepal.py: its encoders, its models, and one run of a protocol."""

from argparse import Namespace
from functools import lru_cache
from time import perf_counter, process_time

from common import DEVLIN, RAW, depth, load
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner, simulate
from skactive.bert import BertClassifier, BertFeatures


def open_encoder(which, settings):
    """Name the first encoder, or the second: another model, or the first one's half."""
    if which == "first":
        return settings.model
    if settings.second_model:
        return settings.second_model
    folder = settings.out / "second-encoder"
    if not (folder / "tokenizer_config.json").exists():
        from transformers import AutoModel, AutoTokenizer

        half = depth(settings.model) // 2
        model = AutoModel.from_pretrained(settings.model, num_hidden_layers=half)
        model.save_pretrained(folder)
        AutoTokenizer.from_pretrained(settings.model).save_pretrained(folder)
    return str(folder)


def settings_of(data, settings):
    """Return the settings of a data set; some have half the encoder in bfloat16."""
    if data not in getattr(settings, "halved", []):
        return settings
    model, training = open_encoder("second", settings), settings.training
    training = {**training, "precision": "bfloat16"}
    return Namespace(**{**vars(settings), "model": model, "training": training})


def make_features(which, settings):
    return BertFeatures(
        open_encoder(which, settings),
        **RAW,
        max_length=settings.sizes["max_length"],
        cache=settings.out / "features",
        device=settings.device,
    )


def make_light(which, settings):
    """Make logistic regression on what the encoder gives."""
    model = LogisticRegression(max_iter=1000)
    return make_pipeline(make_features(which, settings), model)


def make_tuned(which, settings):
    """Make the encoder with a linear head, all of it trained."""
    return BertClassifier(
        open_encoder(which, settings),
        max_length=settings.sizes["max_length"],
        max_epochs=settings.sizes["max_epochs"],
        device=settings.device,
        **{**DEVLIN, "pooling": "mean", **settings.training},
    )


@lru_cache(maxsize=1)
def read(name, n_pool, n_test):
    return load(name, n_pool, n_test)


def encode(settings, *, data, encoder, sizes):
    """Time the encoding of the pool; keep that of the test texts as well."""
    settings = settings_of(data, settings)
    X, y, X_test, y_test = read(data, sizes["n_pool"], sizes["n_test"])
    features = make_features(encoder, settings)
    features.transform(X_test)  # first, as that loads the encoder
    start = perf_counter(), process_time()
    features.transform(X)
    seconds = _seconds(start)
    trivial = DummyClassifier().fit(X, y).score(X_test, y_test)
    return {**seconds, "trivial": trivial}


def run_cell(settings, *, protocol, data, strategy, encoder, final, seed, **cell):
    """Let one protocol label a pool."""
    sizes, schedule = cell["sizes"], cell["schedule"]
    settings = settings_of(data, settings)
    X, y, X_test, y_test = read(data, sizes["n_pool"], sizes["n_test"])
    options = {**schedule, "X_test": X_test, "y_test": y_test, "scoring": "accuracy"}
    make = make_tuned if protocol == "AL+FT" else make_light
    learner = ActiveLearner(make(encoder, settings), strategy, random_state=seed)
    if final:
        options["final_estimator"] = make_tuned(final, settings)
    if protocol == "AL+FT":  # the one that takes long
        name = f"{data}-{strategy}-{encoder}-{seed}"
        options["folder"] = settings.out / "al-ft" / name
    start = perf_counter(), process_time()
    run = simulate(learner, X, y, **options)
    if not final:  # the model of the last round is kept
        run.final_scores = dict(run.rounds[-1]["scores"])
    run.info |= {"data": data, "seed": seed, "protocol": protocol}
    return {"run": run.to_dict(), **_seconds(start), **_accelerator(settings)}


def _accelerator(settings):
    """Name the GPU; seconds of runs that have none do not compare."""
    import torch

    if settings.device == "cpu" or not torch.cuda.is_available():
        return {}
    return {"device": torch.cuda.get_device_name()}


def _seconds(start):
    wall, processor = start
    return {"wall": perf_counter() - wall, "processor": process_time() - processor}
