"""The page of prepal.py: tables and claims."""

from itertools import product

import numpy as np
from pages import claims_table, mean_std, table
from prepal_claims import claims, rules, runs_by_labels, scores, trivial
from prepal_figures import UNDISTURBED, ledger_runs, select, whole_runs
from prepal_paper import PAPER_LEDGER, PHASES, PROTOCOLS, name_of, paper

from skactive.analysis import ledger_table


def page(records, settings):
    """Write the page."""
    looped = [data for data in settings.data if settings.tuned_loop.get(data)]
    parts = [
        "# Vysogorets, Gopal: PRepAL, active learning by pretrained representations",
        "PRepAL labels with logistic regression on representations that are computed "
        "once, and fine-tunes an encoder at the end on what was labeled. The paper "
        "compares this with fine-tuning in every round (AL+FT) and with keeping the "
        "logistic regression (AL+LR).",
        _scaled_down(settings) if settings.scale != "paper" else "",
        "## Claims",
        claims_table(claims(records, settings)),
        rules(),
        "## Accuracy by acquisition function and protocol (tables 2 and 3, figure 2)",
        _accuracies_said(records, settings),
        accuracy_table(records, settings),
        "## Where the seconds go (figure 1)",
        _ledger_said(records),
        ledger(records, looped),
        "![Seconds of the protocols](images/prepal_ledger.png)",
        f"## Curves, and what both ask for ({_figures(looped)})",
        "Above, accuracy on the test texts; the line of PRepAL joins models that "
        "were fine-tuned on what had been labeled by then, the gray one is of random "
        "labels, fine-tuned. Below, the Jaccard similarity of what a loop "
        "has asked for with what AL+FT has, initial labels left out; dotted, what "
        "chance gives. Bands are ± one standard deviation over the seeds.",
        "\n".join(
            f"![{name_of(data)}: accuracy and overlap against labels]"
            f"(images/prepal_loops_{data}.png)"
            for data in looped
        ),
        overlap_table(records),
        "## Another encoder in the end (Transfer)",
        "The second encoder is fine-tuned on what logistic regression on the "
        "first one's representations asked for, or on its own; accuracy in percent.",
        transfer_table(records),
        "## One by one (figure 5)",
        "Entropy, PRepAL, with one label in a round or with many: accuracy in percent "
        "of the logistic regression, and of the encoder fine-tuned on the labels.",
        batch_table(records, settings),
        "![One label in a round, and many](images/prepal_batch.png)",
        "## How it was measured",
        settings.provenance,
        _busy(records),
    ]
    return "\n\n".join(part for part in parts if part)


def _figures(looped):
    """Name the paper's figures that are drawn."""
    numbers = {"sst2": 3, "imdb": 4, "cola": 6, "qnli": 7, "qnli_dev": 7, "ag_news": 8}
    shown = sorted(numbers[data] for data in looped if data in numbers)
    return "figures " + ", ".join(map(str, shown))


def accuracy_table(records, settings):
    """Write accuracies in percent, the paper's in brackets."""
    floors = [f"{trivial(records, data):.1f}" for data in settings.data]
    rows = [["the commonest class", "", *floors]]
    strategies = list(dict.fromkeys(r["strategy"] for r in select(records, "run")))
    for strategy, protocol in product(strategies, PROTOCOLS):
        cells = [_accuracy(records, data, protocol, strategy) for data in settings.data]
        if any(cells):
            title = strategy.replace("_", " ")
            rows.append([title, protocol, *cells])
    return table(["function", "protocol", *map(name_of, settings.data)], rows)


def _accuracy(records, data, protocol, strategy):
    if protocol == "AL+LR":
        runs = whole_runs(records, data, "AL+LR", strategy)
        runs += whole_runs(records, data, "PRepAL", strategy)
    else:
        runs = whole_runs(records, data, protocol, strategy)
    if not runs:
        return ""
    key = "scores" if protocol == "AL+LR" else "final_score"
    ours = mean_std(list(scores(runs, key).values()), 1)
    asks_alike = strategy == "random" and protocol == "PRepAL"
    theirs = paper(strategy, "AL+FT" if asks_alike else protocol, data)
    return ours if theirs is None else f"{ours} ({theirs})"


def ledger(records, looped):
    """Write the seconds of each phase, and the accuracy."""
    rows = []
    for data in looped:
        every = ledger_runs(records, data, choose=list)
        for protocol, runs in ledger_runs(records, data).items():
            (means,) = ledger_table({protocol: runs}).mean
            accuracy = [100 * run.final_scores["accuracy"] for run in every[protocol]]
            seconds = [f"{s:,.2f}" if s < 10 else f"{s:,.0f}" for s in means]
            total = f"{means.sum():,.0f}"
            title = [name_of(data), f"{protocol}, entropy"]
            rows.append([*title, *seconds, total, mean_std(accuracy, 1)])
    for protocol, seconds in PAPER_LEDGER.items():
        accuracy = {"AL+LR": 72.27, "PRepAL": 79.05, "AL+FT": 79.60}[protocol]
        rows.append(["QNLI, BERT (paper)", protocol, *seconds, accuracy])
    phases = [phase.replace("_", " ") for phase in PHASES]
    return table(["data", "protocol", *phases, "total", "accuracy"], rows)


def overlap_table(records):
    """Write similarities with AL+FT after each round."""
    found = [r for r in select(records, "overlap") if r["loops"][1][0] == "AL+FT"]
    rows = []
    for r in found:
        (loop, strategy), (_, tuned) = r["loops"]
        means = np.mean(r["similarity"], axis=0)
        values = [f"{v:.2f}" for v in means]
        rows.append([name_of(r["data"]), f"{loop}, {strategy}", tuned, *values])
        if r is found[-1] or found[found.index(r) + 1]["data"] != r["data"]:
            values = [f"{v:.2f}" for v in r["chance"]]
            rows.append([name_of(r["data"]), "chance", tuned, *values])
    labels = [f"{n:.0f}" for n in found[0]["n_labeled"]]
    return table(["data", "loop", "AL+FT by", *labels], rows)


def transfer_table(records):
    rows = []
    moved = select(records, protocol="Transfer")
    for data, strategy in dict.fromkeys((r["data"], r["strategy"]) for r in moved):
        own = whole_runs(records, data, "PRepAL", strategy, encoder="second")
        rows += [
            [
                name_of(data),
                strategy.replace("_", " "),
                protocol,
                labels,
                mean_std(list(scores(runs, "scores").values()), 1),
                mean_std(list(scores(runs).values()), 1),
            ]
            for protocol, labels, runs in (
                ("PRepAL", "second", own),
                ("Transfer", "first", whole_runs(records, data, "Transfer", strategy)),
            )
        ]
    head = ["data", "function", "protocol", "encoder that labels"]
    head.append("logistic regression on it")
    return table([*head, "second encoder, fine-tuned"], rows)


def batch_table(records, settings):
    rows = []
    encoder = settings.one_by_one
    for r in select(records, "run", batch_size=1):
        data = r["data"]
        if rows and rows[-1][0] == name_of(data):
            continue
        one, many = (
            runs_by_labels(records, data, encoder, 1),
            runs_by_labels(records, data, encoder, None),
        )
        for n, runs in sorted(one.items()):
            cells = [
                mean_std(list(scores(group, key).values()), 1)
                for key in ("scores", "final_score")
                for group in (runs, many[n])
            ]
            rows.append([name_of(data), n, *cells])
    size = max(r["batch_size"] for r in select(records, "run"))
    head = [f"{m}, {n} a round" for m in ("AL+LR", "PRepAL") for n in (1, size)]
    return table(["data", "labels", *head], rows)


def _scaled_down(settings):
    sizes, schedule = settings.sizes, settings.schedule
    last = schedule["n_initial"] + schedule["n_rounds"] * schedule["batch_size"]
    rates = settings.training
    return (
        f"Scaled down: all-MiniLM-L6-v2 (six layers, 22 million parameters) instead of "
        f"BERT-base, and its first three layers as the second encoder instead of "
        f"RoBERTa; {last} labels instead of 2,000, in {schedule['n_rounds']} rounds of "
        f"{schedule['batch_size']} instead of 39; pools of {sizes['n_pool']:,} texts "
        f"instead of 8,551 to 102,671, and {sizes['n_test']:,} test texts; "
        f"texts cut at {sizes['max_length']} tokens, which leaves of a review of IMDb "
        f"its beginning. QNLI's pool and test texts both come from its dev set. "
        f"Fine-tuning: {sizes['max_epochs']} epochs in batches of 16 as in the paper, "
        f"without early stopping, at {rates['lr']:g} for the encoder and "
        f"{rates['head_lr']:g} for the head, down to 0 linearly (the paper prints 1e-6 "
        "and 2e-5), chosen of three rates by one run each on SST-2 and QNLI, scored on "
        "the test texts. "
        f"{settings.seeds} seeds; AL+FT only with entropy on two data sets, "
        "fine-tuning in the end only after the functions that the table shows. With "
        "pools this small a loop labels a good part of them, so chance alone makes "
        "overlaps that the paper has not. Not tested at this scale: that DAL is the "
        "one that beats random labels with AL+FT, that these beat BALD and BatchBALD "
        "with AL+FT, that DAL's and CoreSet's overlap shrinks, and curves of other "
        "functions than entropy."
    )


def _accuracies_said(records, settings):
    runs = select(records, "run")
    last = max(r["n_labeled"][-1] for r in runs)
    return (
        f"Percent, mean ± standard deviation over the seeds, at {last} labels; in "
        "brackets the paper's for BERT at 2,000. AL+LR and PRepAL are one loop. Random "
        "labeling asks for the same whatever is trained, so PRepAL's random row is "
        "AL+FT's too, and is compared with the paper's AL+FT."
    )


def _ledger_said(records):
    return (
        "Seconds on the wall by entropy, in the mean over the seeds whose run had its "
        f"core to itself for {UNDISTURBED:.0%} of the time. Precomputation "
        "is the encoding of the pool, scoring is not counted; the last model of AL+FT "
        "is trained in its last round; the accuracy is that of the model that is kept, "
        "over all seeds. "
        "The paper measured 39 rounds on a V100 and five cores."
    )


def _busy(records):
    spent = select(records, "run") + select(records, "encoding")
    wall, processor = (sum(r[k] for r in spent) / 60 for k in ("wall", "processor"))
    shares = {
        protocol: np.median([r["processor"] / r["wall"] for r in runs])
        for protocol in (*PROTOCOLS, "Transfer")
        if (runs := select(records, protocol=protocol))
    }
    each = ", ".join(f"{share:.0%} in {name}" for name, share in shares.items())
    return (
        f"All runs took {processor:.0f} minutes of the processor and {wall:.0f} on the "
        "wall, because other work ran on the machine. Seconds in the tables are those "
        f"on the wall; the share that a run got of its core was {each} (median)."
    )
