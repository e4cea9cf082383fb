"""The tables of griesshaber2020.py."""

import numpy as np
from common import harness
from griesshaber2020_cells import freeze_of
from griesshaber2020_claims import encoder_changes, head_change, make_claims
from griesshaber2020_figures import PAPER, as_runs, by_freeze, loops, name_of, shares
from verdicts import claim_tables

from skactive.analysis import learning_curve


def make_tables(records, settings):
    """Claims, tables 1 and 2, seconds, and what figures 2 to 4 and table 3 show."""
    return {
        **claim_tables(make_claims, records, settings),
        "accuracies": _accuracies(records, settings),
        "widths": _widths(records, settings),
        "seconds": _seconds(records, settings),
        "strategies": _by_labels(
            records, settings, lambda r: 100 * np.array(r["scores"]), digits=1
        ),
        "shares": _shares(records, settings),
        "changes": _changes(records, settings),
        "classes": _classes(records, settings),
    }


def of_paper(what, data, freeze):
    """Look up the paper's figure; nothing if it has none of this data set."""
    name, order = name_of(data), PAPER["order"]
    return PAPER[what][str(freeze)][order.index(name)] if name in order else ""


def width(found, first=0):
    """Mean width of the bootstrap interval from a round on, in percent.

    NaN for one seed. The paper does not say how its intervals were computed; for three
    runs, as in the paper, the bootstrap interval is the range of the runs.
    """
    if len(found) < 2:
        return np.nan
    curve = learning_curve(as_runs(found, first))
    return 100 * float(np.mean(curve.high - curve.low))


def pool_share(records, data, which="classes"):
    """Shares of the classes in a pool; with "test_classes", in the test texts."""
    (pool,) = harness.select(records, part="pool", data=data)
    return np.array(pool[which]) / sum(pool[which])


def _frozen(freeze, settings):
    n = freeze_of(freeze, settings.depth)
    return [str(freeze), str(n), f"{abs(n) / settings.depth:.0%}"]


def _freezing_table(settings, cells, more=()):
    rows = []
    for freeze in settings.freezes:
        row = _frozen(freeze, settings)
        for data in settings.data:
            row += cells(data, freeze)
        rows.append(row)
    head = ["F of 12", f"F of {settings.depth}", "share"]
    for data in settings.data:
        head += [name_of(data), "paper"]
    return harness.table(head, [*rows, *more])


def _accuracies(records, settings):
    def cells(data, freeze):
        found = by_freeze(records, settings, data, freeze)
        ends = [100 * r["scores"][-1] for r in found]
        return [harness.mean_std(ends, 1), of_paper("accuracy", data, freeze)]

    chance = ["(largest class)", "", ""]
    for data in settings.data:
        chance += [f"{100 * pool_share(records, data, 'test_classes').max():.1f}", ""]
    return _freezing_table(settings, cells, [chance])


def _widths(records, settings):
    def cells(data, freeze):
        here = f"{width(by_freeze(records, settings, data, freeze)):.1f}"
        return [here, of_paper("width", data, freeze)]

    return _freezing_table(settings, cells)


def _spent(record, settings):
    if settings.scale == "paper":
        return sum(record["ledger"].values())
    return record["processor"]


def _seconds(records, settings):
    """Tabulate the seconds of the seeds that ran side by side on one machine."""
    timed = getattr(settings, "timed", settings.seeds)
    records = [r for r in records if r["seed"] < timed]
    whole, rows = {}, []
    for freeze in settings.freezes:
        row = _frozen(freeze, settings)
        for data in settings.data:
            found = by_freeze(records, settings, data, freeze)
            seconds = np.array([_spent(r, settings) for r in found])
            whole.setdefault(data, seconds)
            saved = 100 * (1 - seconds / whole[data])
            row += [
                harness.mean_std(seconds, 1),
                "" if not freeze else harness.mean_std(saved, 0),
            ]
        rows.append(row)
    head = ["F of 12", f"F of {settings.depth}", "share"]
    for data in settings.data:
        head += [f"{name_of(data)}, s", "saved, %"]
    return harness.table(head, rows)


def _by_labels(records, settings, function, digits, pool=None):
    """Tabulate by labels; `pool(data, labels)` gives a row of each pool."""
    rows = []
    labels = loops(records, settings.data[0])[0]["n_labeled"]
    for data in settings.data:
        for strategy in ("bald", "random"):
            found = loops(records, data, strategy)
            columns = np.transpose([function(r) for r in found])
            row = [harness.mean_std(values, digits) for values in columns]
            rows.append([name_of(data), strategy, *row])
        if pool:
            row = [f"{pool(data, n):.{digits}f}" for n in labels]
            rows.append([name_of(data), "(pool)", *row])
    return harness.table(["data", "labels by", *map(str, labels)], rows)


def _classes(records, settings):
    def pool(data, n):
        share = pool_share(records, data)
        return n * (share.max() - share.min())

    return _by_labels(records, settings, lambda r: r["imbalance"], 0, pool)


def _changes(records, settings):
    """Tabulate how far the layers of the encoder and the head moved."""
    rows = []
    for data in settings.data:
        for strategy in ("random", "bald"):
            found = loops(records, data, strategy)
            layers = np.mean([encoder_changes(r) for r in found], axis=0)
            head = np.mean([head_change(r) for r in found])
            moved = [f"{1000 * value:.3f}" for value in (*layers, head)]
            rows.append([name_of(data), strategy, *moved])
    layers = [f"layer {i}" for i in range(settings.depth)]
    return harness.table(["data", "labels by", *layers, "head"], rows)


def _shares(records, settings):
    rows = []
    for data in settings.data:
        for share in settings.shares:
            found = shares(records, data, share)
            scores = harness.mean_std([100 * r["score"] for r in found], 1)
            size = f"{found[0]['n_labeled']:,}"
            rows.append([name_of(data), f"{share:.0%}", size, scores])
    return harness.table(["data", "share", "labels", "accuracy"], rows)
