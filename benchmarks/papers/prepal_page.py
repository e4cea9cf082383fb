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
        "## Seconds of each phase (figure 1)",
        _ledger_said(records),
        ledger(records, looped),
        "![Seconds of the protocols](images/prepal_ledger.png)",
        f"## Curves and overlap ({_figures(looped)})",
        "Top: accuracy on the test texts. The points of PRepAL are models that were "
        "fine-tuned on the labels so far; the gray line is fine-tuning on random "
        "labels. Bottom: Jaccard similarity between the queries of a loop and those of "
        "AL+FT, without the initial labels; the dotted line is the value expected by "
        "chance. Bands are ± one standard deviation over the seeds.",
        "\n".join(
            f"![{name_of(data)}: accuracy and overlap against labels]"
            f"(images/prepal_loops_{data}.png)"
            for data in looped
        ),
        overlap_table(records),
        "## Another final encoder (Transfer)",
        "The second encoder is fine-tuned on the queries of logistic regression on the "
        "representations of the first encoder, or on its own. Accuracy in percent.",
        transfer_table(records),
        "## One label per round (figure 5)",
        "PRepAL with entropy, with one or many labels per round. Accuracy in percent "
        "of the logistic regression and of the encoder fine-tuned on the labels.",
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
        f"texts cut at {sizes['max_length']} tokens, so only the beginning of an IMDb "
        f"review is used. QNLI's pool and test texts both come from its dev set. "
        f"Fine-tuning: {sizes['max_epochs']} epochs in batches of 16 as in the paper, "
        f"without early stopping, at {rates['lr']:g} for the encoder and "
        f"{rates['head_lr']:g} for the head, decreasing linearly to 0 (the paper "
        "states 1e-6 and 2e-5). The rates are the best of three by one run each on "
        "SST-2 and QNLI, scored on the test texts. "
        f"{settings.seeds} seeds. AL+FT was run with entropy only, on two data sets; "
        "the final fine-tuning only for the functions in the table. A loop labels a "
        "large part of such small pools, so overlaps by chance are larger than in the "
        "paper. Not tested at this scale: that DAL is better than random labels with "
        "AL+FT, that random labels are better than BALD and BatchBALD with AL+FT, that "
        "the overlap of DAL and CoreSet decreases, and the curves of functions other "
        "than entropy."
    )


def _accuracies_said(records, settings):
    runs = select(records, "run")
    last = max(r["n_labeled"][-1] for r in runs)
    return (
        f"Percent, mean ± standard deviation over the seeds, at {last} labels. "
        "Brackets hold the paper's values for BERT at 2,000 labels. AL+LR and PRepAL "
        "are the same loop. Random labels do not depend on the model, so the random "
        "row of PRepAL is also that of AL+FT, and is compared with the paper's AL+FT."
    )


def _ledger_said(records):
    return (
        "Wall seconds with entropy, averaged over the seeds whose run had a core for "
        f"at least {UNDISTURBED:.0%} of the time. Precomputation is the encoding of "
        "the pool. Scoring is not counted. The last model of AL+FT is trained in its "
        "last round. The accuracy is that of the final model, over all seeds. "
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
        f"All runs took {processor:.0f} minutes of processor time and {wall:.0f} "
        "minutes of wall time, because other work ran on the machine. The tables have "
        f"wall seconds. The median share of a core that a run had was {each}."
    )
