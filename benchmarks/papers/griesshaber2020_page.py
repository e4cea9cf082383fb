"""The page of griesshaber2020.py: tables and claims."""

import numpy as np
from griesshaber2020_cells import freeze_of
from griesshaber2020_claims import make_claims, rules
from griesshaber2020_figures import loops, name_of, select
from griesshaber2020_numbers import (
    ACCURACY,
    WIDTH,
    compare_scatter,
    encoder_changes,
    finals,
    head_change,
    of_paper,
    pool_share,
    shares,
    width,
    widths_of_paper,
)
from pages import BUSY, claims_table, mean_std, table

# Above the share of the largest class, in points; less leaves settings little room.
ROOM = 15


def page(records, settings):
    """Write the page."""
    parts = [
        "# Grießhaber, Maucher, Vu: few labels, BALD and frozen layers",
        "The paper fine-tunes BERT under a CNN on up to 910 labels of four GLUE tasks, "
        "which are selected by BALD or at random in rounds of 100, and freezes the "
        f"first or the last 3 or 6 of 12 layers. Here: {_sizes(records, settings)}.",
        _scaled_down(settings) if settings.scale != "paper" else "",
        _cut(records, settings),
        "## Claims",
        claims_table(make_claims(records, settings)),
        rules(),
        "## Accuracy by what is frozen (table 1)",
        f"Percent after {_last(records)} labels by BALD, mean ± standard deviation "
        f"over {settings.seeds} seeds; F > 0 freezes the first layers (and the "
        "embeddings), F < 0 the last ones. The paper's figures are those of 910 "
        "labels. *Largest class*: the accuracy of always predicting the most frequent "
        "class of the test texts.",
        _accuracies(records, settings),
        _room(records, settings),
        "## Width of the band (table 2)",
        "Width of the bootstrap interval over seeds, in points, averaged over the "
        "label counts. With three seeds this is the range of the runs.",
        _widths(records, settings),
        _test_of_paper(),
        "![Accuracy against labels by what is frozen]"
        "(images/griesshaber2020_freezing.png)",
        "This is figure 5 of the paper. Bands are bootstrap intervals of the mean. "
        "With three runs they are the range of the runs.",
        "## What freezing saves",
        (
            "Seconds of all trainings and queries of a run. "
            if settings.scale == "paper"
            else "Processor seconds of a whole run: all training, and predictions on "
            "the test texts and the pool. "
        )
        + "The activations below the first trained layer are computed once per text.",
        _seconds(records, settings),
        "## BALD against random labels (figure 3)",
        _strategies(records, settings),
        "![Accuracy against labels, BALD and random]"
        "(images/griesshaber2020_curves.png)",
        "## All labels against a tenth (figure 2)"
        if min(settings.shares) == 0.1
        else "## All labels against a part (figure 2)",
        _shares(records, settings),
        "![Accuracy with all labels and with a part]"
        "(images/griesshaber2020_shares.png)",
        "## Changes of the layers in training (figure 4)",
        f"Mean absolute change of the parameters from the pretrained ones (of the head "
        f"from its random ones) in the training on {_last(records)} labels, mean over "
        "seeds. Thin lines are one standard deviation within the layer. A 0 marks "
        "layers that did not change. The paper shows QNLI. The table has the same "
        "values in thousandths, because the differences are too small for the picture. "
        "The layers of the encoder change by similar amounts, perhaps because the "
        "steps of AdamW hardly depend on the size of the gradient.",
        "![Change of each layer](images/griesshaber2020_layers.png)",
        _changes(records, settings),
        "## Classes among the labels (table 3)",
        "Labels of the largest class minus those of the smallest, mean ± standard "
        "deviation over seeds. *Pool*: the same for labels with the class proportions "
        "of the pool. The paper assumes that the classes of the pool have equal sizes. "
        "If they do not, random labels are not balanced either, so the claims compare "
        "BALD with random labels of the same seed.",
        _classes(records, settings),
        "## How it was measured",
        settings.provenance,
        _spent_in_all(records) if settings.scale != "paper" else "",
        BUSY if settings.scale == "cpu" else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _last(records):
    return max(r["n_labeled"][-1] for r in records if r["part"] == "loop")


def _sizes(records, settings):
    pool = {r["data"]: r["pool"] for r in select(records, part="loop")}
    names = [name_of(data) for data in settings.data]
    if len(set(pool.values())) == 1:
        names[-1] += f", of each a pool of {pool[settings.data[0]]:,} texts"
    else:
        names = [f"{name_of(d)} (a pool of {pool[d]:,} texts)" for d in settings.data]
    counts = settings.schedule
    return (
        f"{', '.join(names)}; the first {counts['n_initial']} texts, then "
        f"{counts['n_rounds']} rounds of {counts['batch_size']}; {settings.seeds} seeds"
    )


def _scaled_down(settings):
    sizes, training = settings.sizes, settings.training
    found = []
    for freeze in (3, 6):
        n = freeze_of(freeze, settings.depth)
        found.append(
            f"{n} of {settings.depth} ({n / settings.depth:.0%}) for {freeze} of 12 "
            f"({freeze / 12:.0%})"
        )
    counts = settings.schedule
    return (
        f"Scaled down: all-MiniLM-L6-v2 with {settings.depth} layers instead of "
        f"BERT-base with 12, so {' and '.join(found)} are frozen; a pool of "
        f"{sizes['n_pool']:,} texts instead of 20,000, of train files that are "
        "samples themselves (QNLI 2,000 texts, MNLI 9,888, SNLI 19,999); "
        f"{counts['n_rounds']} rounds "
        f"of {counts['batch_size']} labels instead of 9 of 100; "
        f"{sizes['n_test']} test texts; rates "
        f"of {training['lr']:g} for the encoder and {training['head_lr']:g} for the "
        "head, decreasing to 0 (the paper states none). The rates were chosen by a few "
        "trials on the same test texts, so all scores are slightly optimistic. *All* "
        "labels (figure 2) are those "
        f"of {settings.n_whole} texts, not of the whole training file."
    )


def _cut(records, settings):
    """Say how many texts are longer than what the models read."""
    found = [
        f"{name_of(data)} {select(records, part='pool', data=data)[0]['cut']:.0%}"
        for data in settings.data
    ]
    return (
        f"Texts (or pairs) are cut at {settings.sizes['max_length']} tokens. This "
        f"affects the following shares of the pools: {', '.join(found)}."
    )


def _chance(records, data):
    return 100 * pool_share(records, data, "test_classes").max()


def _room(records, settings):
    """Name the data sets on which the models are hardly better than chance."""
    near = [
        name_of(data)
        for data in settings.data
        if finals(loops(records, data)).mean() < _chance(records, data) + ROOM
    ]
    if not near:
        return ""
    return (
        f"With nothing frozen, the models end less than {ROOM} points above the "
        f"largest class on {', '.join(near)}, so differences are small there."
    )


def _test_of_paper():
    """Put the paper's own widths to the test of the claims."""
    found = [compare_scatter(widths_of_paper(freeze, 0))[0] for freeze in (3, -3)]
    first, last = (text.split(", n =")[0] for text in found)
    return (
        "The same test on the values of the paper's table: freezing the first 3 layers "
        f"gives {first}; freezing the last 3 gives {last}."
    )


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
    return table(head, [*rows, *more])


def _accuracies(records, settings):
    def cells(data, freeze):
        figures = of_paper(ACCURACY[freeze], data)
        here = mean_std(finals(loops(records, data, freeze=freeze)), 1)
        return [here, f"{figures[0]} ± {figures[1]}" if figures else ""]

    chance = ["(largest class)", "", ""]
    for data in settings.data:
        chance += [f"{_chance(records, data):.1f}", ""]
    return _freezing_table(settings, cells, [chance])


def _widths(records, settings):
    def cells(data, freeze):
        figure = of_paper(WIDTH[freeze], data)
        here = f"{width(loops(records, data, freeze=freeze)):.1f}"
        return [here, f"{figure:.1f}" if figure else ""]

    return _freezing_table(settings, cells)


def _spent(record, settings):
    if settings.scale == "paper":
        return sum(record["ledger"].values())
    return record["processor"]


def _seconds(records, settings):
    whole, rows = {}, []
    for freeze in settings.freezes:
        row = _frozen(freeze, settings)
        for data in settings.data:
            found = loops(records, data, freeze=freeze)
            seconds = np.array([_spent(r, settings) for r in found])
            whole.setdefault(data, seconds)
            saved = 100 * (1 - seconds / whole[data])
            row += [mean_std(seconds, 1), "" if not freeze else mean_std(saved, 0)]
        rows.append(row)
    head = ["F of 12", f"F of {settings.depth}", "share"]
    for data in settings.data:
        head += [f"{name_of(data)}, s", "saved, %"]
    return table(head, rows)


def _by_labels(records, settings, function, digits, pool=None):
    """Tabulate by labels; `pool(data, labels)` gives a row of each pool."""
    rows = []
    labels = loops(records, settings.data[0])[0]["n_labeled"]
    for data in settings.data:
        for strategy in ("bald", "random"):
            found = loops(records, data, strategy)
            columns = np.transpose([function(r) for r in found])
            row = [mean_std(values, digits) for values in columns]
            rows.append([name_of(data), strategy, *row])
        if pool:
            row = [f"{pool(data, n):.{digits}f}" for n in labels]
            rows.append([name_of(data), "(pool)", *row])
    return table(["data", "labels by", *map(str, labels)], rows)


def _strategies(records, settings):
    said = f"Percent by the number of labels, over {settings.seeds} seeds; F = 0."
    found = _by_labels(
        records, settings, lambda r: 100 * np.array(r["scores"]), digits=1
    )
    return f"{said}\n\n{found}"


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
    return table(["data", "labels by", *layers, "head"], rows)


def _shares(records, settings):
    rows = []
    for data in settings.data:
        for share in settings.shares:
            found = select(records, part="share", data=data, share=share)
            scores = mean_std(shares(records, data, share), 1)
            size = f"{found[0]['n_labeled']:,}"
            rows.append([name_of(data), f"{share:.0%}", size, scores])
    said = (
        "Percent, with labels drawn at random, nothing frozen; mean ± standard "
        "deviation over seeds. All labels are also the line in the figure above."
    )
    return said + "\n\n" + table(["data", "share", "labels", "accuracy"], rows)


def _spent_in_all(records):
    """Say how long the loops took."""
    minutes = sum(r["processor"] for r in records if r["part"] != "pool") / 60
    return f"All runs took {minutes:.0f} minutes of processor time."
