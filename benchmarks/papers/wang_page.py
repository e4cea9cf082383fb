"""The page of wang.py: what it says around its tables."""

from common import DATA
from pages import BUSY, claims_table
from verdicts import UNCORRECTED
from wang_claims import TENTH, make_claims
from wang_tables import (
    epochs_table,
    equal_time_table,
    means_table,
    rates_table,
    shares_table,
    task_table,
)
from wang_values import (
    AT_HAND,
    PATIENCE,
    POINT,
    counted,
    cut_off,
    metric_of,
    pick,
    title_of,
    twins,
)

_RULES = (
    "The verdicts are computed from Student's 95 % intervals (in brackets). A claim "
    "over several data sets takes the mean over the seeds of each as one value, and "
    "the interval goes over the data sets. A claim on one data set takes the "
    "differences between runs of one seed, and the interval goes over the seeds. "
    "*Cost*: holds where the interval ends below {point:g} point above the paper's "
    "figure, does not hold where it begins above that. *Save*: holds where it begins "
    "above {tenth:g} points below the figure, does not hold where it ends below that. "
    "*Do not save much*: holds where it ends below {tenth:g} points above the figure, "
    "does not hold where it begins above that. *Gain next to nothing*: holds where the "
    "lead ends below {point:g} point, does not hold where it begins above that. "
    "*About 60 %*: within {tenth:g}. *Longer*, *better*, *spoils*: by the sign. "
    'Otherwise the verdict is "cannot tell". Costs are points of 100. The paper does '
    "not state whether its percentages are points or shares of the score."
)
_SECONDS = (
    "As in the paper, the time saved and the leads at equal time assume that every "
    "layer runs in every epoch: the time of a run is its number of epochs times the "
    "seconds of such an epoch, which were measured separately (below). By default "
    "skactive caches the outputs of the frozen layers, so these run only once. The "
    "paper does not, so the savings with cached layers are in separate rows."
)


def page(records, settings):
    """Write the page."""
    scaled = settings.scale != "paper"
    cpu = "of the processor " if settings.clock == "cpu_seconds" else ""
    parts = [
        "# Wang: training the last layers against training all",
        "The paper trains the last 1 to 4 of BERT's 12 layers on GLUE tasks and asks "
        "how much score this costs and how much time it saves. Tasks here, with the "
        f"number of training texts (a tenth is for validation): "
        f"{_sizes(records, settings)}. " + _on_tasks(settings),
        _scaled_down(settings) if scaled else "",
        f"{_on_metrics(settings)} {_on_test_texts(settings)}".strip(),
        "## Claims",
        claims_table(make_claims(records, settings)),
        _RULES.format(point=POINT, tenth=TENTH),
        _on_what_counts(records, settings),
        _SECONDS + _on_the_limit(records, settings),
        _on_size() if scaled else "",
        "## Rates",
        "Score of each setting at both rates, with the first "
        f"{settings.rate_seeds} seed(s). The rate that is better on the validation "
        "part is bold; the rest of the page uses it. *Trivial* is the most frequent "
        "class, or the mean.",
        rates_table(records, settings),
        "## Score and time until training stops",
        "Dev score of the epoch that was best on the validation part, means ± standard "
        f"deviation over {settings.seeds} seeds. *Saved*: time saved if every layer "
        f"runs in every epoch, for tasks that count. *Bottom kept*: measured seconds "
        f"{cpu}with cached frozen layers.",
        *(task_table(records, settings, data) for data in settings.data),
        "Means over the tasks that count, for tasks that are large and small in the "
        "paper:",
        means_table(records, settings),
        "## After each epoch (tables 2 to 9)",
        f"Dev score / seconds {cpu}since the start, with cached frozen layers. Means "
        "over the runs that reached the epoch; brackets hold their number if some had "
        "stopped.",
        *(epochs_table(records, settings, data) for data in settings.data),
        "## Seconds of an epoch",
        "Seconds of an epoch as a share of those with all layers trained, means ± "
        f"standard deviation over {settings.seeds} seeds. *Every layer run*: one "
        f"epoch of at most {settings.n_plain} texts; the paper says about 0.6. "
        "*Bottom kept*: all epochs of the runs above. The frozen layers are computed "
        "once, before the first epoch, and are not counted.",
        shares_table(records, settings),
        "## At equal time (figures 3 to 6)",
        "Dev score of the epoch that was best so far on the validation part, after a "
        "quarter, half and all of the seconds that training all layers takes. Means "
        'over seeds; "-" if a run has not finished an epoch. The leads in the claims '
        "are means over the budgets within which both have a model.",
        *(
            equal_time_table(records, settings, data)
            for data in counted(records, settings)
        ),
        "![Score against seconds of training](images/wang_time.png)",
        "Seconds with cached frozen layers. Means over seeds, up to the last epoch of "
        "the shortest run of a setting. Dotted: the trivial score.",
        "## How it was measured",
        settings.provenance,
        BUSY if settings.scale == "cpu" else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _sizes(records, settings):
    sizes = {r["data"]: r["size"] for r in records}
    return ", ".join(
        f"{title_of(data)} "
        f"({'all' if sizes[data] is None else format(sizes[data], ',')}, "
        f"{metric_of(data)})"
        for data in settings.data
    )


def _on_tasks(settings):
    """Name the stand-in, and the tasks of the paper that are missing."""
    text = ""
    if "snli" in settings.data:
        text += (
            "SNLI is not one of the paper's tasks. It replaces MNLI, the same task "
            "with longer texts, because a small encoder can learn it from few texts. "
        )
    left = [title_of(data) for data in AT_HAND if data not in settings.data]
    if left:
        text += f"Left out at this scale, though available: {', '.join(left)}. "
    return text + "QQP is not available."


def _scaled_down(settings):
    found = twins(settings)
    shares = ", ".join(f"{n} as {k} of 12" for k, n in found.items())
    none = " and ".join(f"the last {k}" for k in (4, 3, 2, 1) if k not in found)
    extra = [f"the last {n}" for n in settings.last if n not in found.values()]
    return (
        f"Scaled down: all-MiniLM-L6-v2 with {settings.depth} layers instead of "
        f"BERT-base with 12 (by share: last {shares}; {none} of 12 have no equivalent "
        "here"
        + (
            f", and {', '.join(extra)} of {settings.depth} have none there"
            if extra
            else ""
        )
        + "); mean pooling; at most "
        f"{settings.max_length} tokens and {settings.max_epochs} epochs instead of 30; "
        f"batches of {settings.batch_size} instead of 1; at most {settings.n_test} dev "
        f"texts; the lower rate {min(settings.rates):g} instead of 2e-5, with "
        f"{settings.head_lr:g} for the head at both; both rates with the first "
        f"{settings.rate_seeds} seed(s) only."
    )


def _on_metrics(settings):
    """Say where epochs are not chosen by the task's own metric."""
    other = [
        f"{title_of(data)} by {chosen} instead of {metric}"
        for data, chosen, metric in (
            ("stsb", "R²", "Spearman's rho"),
            ("mrpc", "accuracy", "F1"),
        )
        if data in settings.data
    ]
    if not other:
        return ""
    return (
        "The paper stops training by the task's metric. Here the score of the "
        "estimator on the validation part stops training and chooses epoch and rate: "
        f"{', '.join(other)}. The validation part is small, so that score is coarse. "
        "Dev scores use the task's metric."
    )


def _on_test_texts(settings):
    """Name the data sets whose dev scores are of another part."""
    files = {data: DATA[data][2] for data in settings.data if data in DATA}
    names = [title_of(data) for data, file in files.items() if file == "test"]
    if not names:
        return ""
    return f"Of {' and '.join(names)} the dev texts are from the test file."


def _on_what_counts(records, settings):
    """Name the rule by which tasks enter the verdicts, and those that do not."""
    idle = [d for d in settings.data if d not in counted(records, settings)]
    rule = (
        "A task counts if some setting is better than the trivial answer: the interval "
        "over seeds of the difference is above "
        f"{POINT:g} point. "
    )
    if not idle:
        return rule + "All do."
    names = ", ".join(map(title_of, idle))
    return rule + f"{names} do not count and are not used in verdicts."


def _on_the_limit(records, settings):
    runs = [
        r
        for data in settings.data
        for n_last in (None, *settings.last)
        for r in pick(records, settings, data, n_last)
    ]
    full, unmet = cut_off(runs, settings)
    return (
        f" Of {len(runs)} runs at the better rate {full} reach the limit of "
        f"{settings.max_epochs} epochs, {unmet} of them without having met the "
        f"stopping rule ({PATIENCE} epochs in a row without a gain): these were *cut "
        "off*. *Until training stops* therefore includes stopping at the limit, and "
        "the savings could differ with longer runs."
    )


def _on_size():
    return (
        "*Large* tasks are those that are large in the paper, with 67,000 texts or "
        "more. Here they are no larger than the small tasks of the paper, so the "
        "results do not apply to the paper's large tasks. A row with only one task of "
        "a group depends on one data set and one depth of a small encoder; it does not "
        "apply to the other tasks of the group. " + UNCORRECTED
    )
