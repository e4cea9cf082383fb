"""The page of griesshaber2020.py: tables and claims."""

import numpy as np
from griesshaber2020_cells import freeze_of
from griesshaber2020_claims import (
    ACCURACY,
    ALIKE,
    WIDTH,
    finals,
    make_claims,
    of_paper,
    width,
)
from griesshaber2020_figures import loops, name_of, select
from pages import BUSY, claims_table, mean_std, table

_RULES = (
    "The verdicts are computed. *Better*, *beats*, *worse*, *more*, *less*: by the "
    "sign of the mean difference between runs of one seed, over data sets and seeds, "
    "where its 95 % interval (Student's t, in brackets) leaves out 0. *Scatters less*, "
    "*narrows*: deviations of the runs from the mean of their setting, in points, "
    "tested by Welch's t at 0.05 (Levene's idea); those of {seeds} runs depend on each "
    "other, so p is a guide only. *Alike*: within {alike:g} %. Anything else cannot "
    "tell. Data sets are few and chosen: an interval speaks of other seeds, hardly of "
    "other data."
)


def page(records, settings):
    """Write the page."""
    parts = [
        "# Grießhaber, Maucher, Vu: few labels, BALD and frozen layers",
        "The paper fine-tunes BERT under a CNN on up to 910 labels of four GLUE tasks, "
        "which BALD or chance chooses in rounds of 100, and freezes the first or the "
        f"last 3 or 6 of 12 layers. Here: {_sizes(records, settings)}.",
        _scaled_down(settings) if settings.scale != "paper" else "",
        "## Claims",
        claims_table(make_claims(records, settings)),
        _RULES.format(seeds=settings.seeds, alike=ALIKE),
        "## Accuracy by what is frozen (table 1)",
        f"Percent after {_last(records)} labels by BALD, mean ± standard deviation "
        f"over {settings.seeds} seeds; F > 0 freezes the first layers (and the "
        "embeddings), F < 0 the last ones. The paper's figures are those of 910 "
        "labels.",
        _accuracies(records, settings),
        "## Width of the band (table 2)",
        "Upper less lower limit of the bootstrap interval over seeds, in points, in "
        "the mean over the label counts; with three seeds this is the range of the "
        "runs.",
        _widths(records, settings),
        "![Accuracy against labels by what is frozen]"
        "(images/griesshaber2020_freezing.png)",
        "The paper's figure 5. Bands are ranges of the runs where there are three.",
        "## What freezing saves",
        (
            "Seconds of all trainings and queries of a run. "
            if settings.scale == "paper"
            else "Seconds of the processor for a whole run: all trainings, predictions "
            "on the test texts and on the pool. "
        )
        + "What lies below the first trained layer is computed once for each text.",
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
        "## How far training moves the layers (figure 4)",
        f"Mean absolute change of the parameters from the pretrained ones (of the head "
        f"from its random ones) in the training on {_last(records)} labels, mean over "
        "seeds; thin lines are one standard deviation within the layer. A 0 marks "
        "layers that have not changed at all, as frozen ones must not.",
        "![Change of each layer](images/griesshaber2020_layers.png)",
        "## Classes among the labels (table 3)",
        "Labels of the largest class less those of the smallest, mean over seeds.",
        _classes(records, settings),
        "## How it was measured",
        settings.provenance,
        BUSY if settings.scale == "cpu" else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _last(records):
    return max(r["n_labeled"][-1] for r in records if r["part"] == "loop")


def _sizes(records, settings):
    pool = {r["data"]: r["pool"] for r in select(records, part="loop")}
    names = [f"{name_of(d)} (a pool of {pool[d]:,})" for d in settings.data]
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
        f"BERT-base with 12, so frozen are {' and '.join(found)}; a pool of "
        f"{sizes['n_pool']:,} texts instead of 20,000; {counts['n_rounds']} rounds "
        f"of {counts['batch_size']} labels instead of 9 of 100; "
        f"at most {sizes['max_length']} tokens; {sizes['n_test']} test texts; rates "
        f"of {training['lr']:g} for the encoder and {training['head_lr']:g} for the "
        "head, falling to 0 (the paper names none). The rates were chosen by a few "
        "trials that were scored on these test texts too, which flatters all settings "
        "somewhat. *All* labels (figure 2) are those "
        f"of {settings.n_whole} texts, not of the whole training file."
        + (
            f" {' and '.join(map(name_of, settings.more))} have figure 2 only."
            if settings.more
            else ""
        )
    )


def _frozen(freeze, settings):
    n = freeze_of(freeze, settings.depth)
    return [str(freeze), str(n), f"{abs(n) / settings.depth:.0%}"]


def _freezing_table(settings, cells):
    rows = []
    for freeze in settings.freezes:
        row = _frozen(freeze, settings)
        for data in settings.data:
            row += cells(data, freeze)
        rows.append(row)
    head = ["F of 12", f"F of {settings.depth}", "share"]
    for data in settings.data:
        head += [name_of(data), "paper"]
    return table(head, rows)


def _accuracies(records, settings):
    def cells(data, freeze):
        figures = of_paper(ACCURACY[freeze], data)
        here = mean_std(finals(loops(records, data, freeze=freeze)), 1)
        return [here, f"{figures[0]} ± {figures[1]}" if figures else ""]

    return _freezing_table(settings, cells)


def _widths(records, settings):
    def cells(data, freeze):
        figure = of_paper(WIDTH[freeze], data)
        here = f"{width(loops(records, data, freeze=freeze)):.1f}"
        return [here, f"{figure:g}" if figure else ""]

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


def _by_labels(records, settings, function, digits):
    rows = []
    for data in settings.data:
        for strategy in ("bald", "random"):
            found = loops(records, data, strategy)
            columns = np.transpose([function(r) for r in found])
            row = [mean_std(values, digits) for values in columns]
            rows.append([name_of(data), strategy, *row])
    labels = loops(records, settings.data[0])[0]["n_labeled"]
    return table(["data", "labels by", *map(str, labels)], rows)


def _strategies(records, settings):
    said = f"Percent by the number of labels, over {settings.seeds} seeds; F = 0."
    found = _by_labels(
        records, settings, lambda r: 100 * np.array(r["scores"]), digits=1
    )
    return f"{said}\n\n{found}"


def _classes(records, settings):
    return _by_labels(records, settings, lambda r: r["imbalance"], digits=0)


def _shares(records, settings):
    rows = []
    for data in (*settings.data, *settings.more):
        for share in settings.shares:
            found = select(records, part="share", data=data, share=share)
            scores = [100 * r["score"] for r in found]
            size = f"{found[0]['n_labeled']:,}"
            rows.append([name_of(data), f"{share:.0%}", size, mean_std(scores, 1)])
    said = (
        "Percent, with labels drawn at random, nothing frozen; mean ± standard "
        "deviation over seeds. All labels are also the line in the figure above."
    )
    return said + "\n\n" + table(["data", "share", "labels", "accuracy"], rows)
