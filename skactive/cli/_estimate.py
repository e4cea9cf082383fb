"""The command `estimate`: shares of classes in a table, with intervals."""

import glob
from pathlib import Path

import numpy as np

from .._storage._outputs import write_own
from .._tables._card import (
    ESTIMATOR,
    list_software,
    name_estimates,
    name_level,
    write_card,
)
from .._tables._labels import (
    describe_lookalikes,
    find_sources,
    read_labels,
    to_indicator,
)
from .._tables._reader import TableFile
from .._tables._writer import write_table
from .._utils._format import is_missing, trim
from ..estimation import Prevalence, estimate_mean, estimate_prevalence, plan_labels
from ..project import Project
from ._parser import say, show_line
from ._predict import refuse_table

_YES, _NO = {"1", "1.0", "true", "yes"}, {"0", "0.0", "false", "no"}


def run_estimate(
    file, label, out, card, plan, confidence_level, regression, model, folder, **columns
):
    """Run the command `estimate`."""
    source, level = Path(file).expanduser(), {"confidence_level": confidence_level}
    if source.is_dir():
        raise ValueError(
            f"argument FILE: must be a table, got the folder {str(source)!r}. Name the "
            "table that `skactive label` wrote, or another one."
        )
    if out is not None and out.suffix.lower() != ".csv":
        raise ValueError(f"argument --out: must end in .csv, got {str(out)!r}.")
    for name, path in (("--out", out), ("--card", card)):
        refuse_table(name, path, source)
    for name, given in (("--out", out), ("--plan", plan)):
        if regression and given is not None:
            raise ValueError(f"argument {name}: is for shares, not for --regression.")
    about = {"model": model, "folder": folder}
    shares, parts = _estimate_project(file, label, regression, level, columns, about)
    if shares is None:
        table = SampledTable(source, label, regression=regression, **columns)
        if plan is not None and not table.rows.any():
            n = plan_labels(plan, n_pool=len(table.rows), **level)
            show_line(
                f"{n:,} random labels give every share within {100 * plan:g} points."
            )
            return 0
        table.check()
        say("The labels must be those of a random sample of the rows.")
        estimate = table.estimate_mean if regression else table.estimate_shares
        shares, parts = estimate(level), table.describe()
        rows = [*name_estimates(shares).items(), name_level(confidence_level)]
        parts["Estimates"] = [*rows, ESTIMATOR]
        parts["Software"] = list_software()
    show_line(shares)
    if card is not None:
        title = f"Shares of {source.name}"
        _write(card, lambda path: write_card(path, title, parts), "the card")
    if plan is not None:
        show_line(_plan(shares, plan, level))
    if out is not None:
        n = f"{len(shares.estimates):,} shares"
        _write(out, lambda path: write_table(path, shares.to_dict()), n)
    return 0


def _write(path, write, what):
    """Write a file by `write(path)`; what is there already is kept."""
    _, kept = write_own(path, write)
    show_line(f"{path}: {what}" + (f"; what was there is {kept} now" if kept else ""))


def _estimate_project(file, label, regression, level, columns, about):
    """Return the estimate of what `skactive label` began for a table, and its card.

    Both are None if it began nothing.
    """
    path, text, group = Path(file).expanduser(), columns["text"], columns["group"]
    is_begun = any(path.parent.glob(f"{glob.escape(path.stem)}*.skactive"))
    is_begun |= about["folder"] is not None
    if not (text and is_begun) or columns["prediction"] or columns["sample"]:
        return None, None
    shown = [group] if group else []
    options = {"separator": columns["separator"], "show": shown, **about}
    project = Project(file, text, label, regression=regression, **options).recall()
    if not project.is_begun:
        return None, None
    with project:
        session, groups = project.session, None
        if group:
            cells = map(project.find_columns, session.pool_ids)
            groups = [next(iter(shown.values()), "") for shown in cells]
        say("The sample is the audit of the session.")
        shares = session.prevalence(groups, **level)
        return shares, project.describe(shares, **level)


def _plan(found: Prevalence, half_width, level):
    """Return how many labels more a plan needs, in a sentence."""
    wanted = [
        plan_labels(half_width, share=x.value, r2=x.r2, n_pool=x.n_pool, **level)
        - x.n_labels
        for x in found.estimates.values()
        if x.value is not None and x.half_width > half_width and 0 < x.value < 1
    ]
    points = f"within {100 * half_width:g} points"
    if not wanted:
        return f"The shares that have an interval are {points}."
    return f"About {max(max(wanted), 1):,} more random labels give shares {points}."


class SampledTable:
    """The sample and the pool of a table: its rows that have a text.

    `rows` (n_pool,) masks the sample.
    """

    def __init__(
        self, source, label, text, prediction, sample, group, separator, regression
    ):
        table = self._table = TableFile(source)
        self._prediction = list(map(table.find, prediction or []))
        self._label, texts = table.find(label), list(map(table.find, text or []))
        more = [table.find(name) for name in (sample, group) if name]
        own = find_sources(table.names)
        table.read([self._label, *texts, *self._prediction, *more, *own])
        if texts:
            table.read_texts(texts)
        self._kept = table.rows
        form = {"regression": regression}
        self._labels = read_labels(table, self._label, separator, **form)
        form |= {"like": self._labels, "predicted": True}
        self._guesses = [read_labels(table, x, **form) for x in self._prediction]
        self.rows = np.array([self._labels.values[i] is not None for i in self._kept])
        if sample:
            self.rows &= self._read_flags(more[0])
        elif self._labels.n_chosen:
            raise ValueError(
                f"column {label!r} of {str(source)!r} must hold the labels of a random "
                f"sample, and {self._labels.n_chosen:,} of them were given in a "
                "session, which chooses most of its texts. Pass the table that was "
                "given to `skactive label`, with --text: its session has a random "
                "sample. Or name the column of a sample with --sample."
            )
        self._groups = None
        if group:
            cells = table.cells(more[-1])
            cells = ["" if is_missing(x) else trim(str(x)) for x in cells]
            self._groups = np.array([cells[i] for i in self._kept])
        for message in table.messages:
            say(message)

    def describe(self):
        """Return how the shares are estimated, parts of a card."""
        sample = (
            f"{int(self.rows.sum()):,} of {len(self.rows):,} rows, said to be a simple "
            "random sample; what people saw before is not known"
        )
        columns = ", ".join(self._prediction) or "none"
        return {"Sample": [("Rows", sample), ("Columns of predictions", columns)]}

    def check(self):
        """Raise a ValueError without a sample, or with rows that lack a prediction."""
        if not self.rows.any():
            raise ValueError(
                f"{self._table.name(self._label)} must hold the labels of a random "
                "sample, and it has none. Label texts that are drawn at random; "
                "`--plan 3` says how many for 3 points to both sides."
            )
        for name, guess in zip(self._prediction, self._guesses, strict=True):
            missing = [row for row in self._kept if guess.values[row] is None]
            if missing:
                raise ValueError(
                    f"argument --prediction: {self._table.name(name)} must hold a "
                    f"prediction of every text, and {len(missing):,} of "
                    f"{len(self._kept):,} have none: {self._table.where(missing)}. "
                    "Predict them, leave these rows out of the file, or leave out "
                    "--prediction."
                )

    def _read_flags(self, key):
        cells = self._table.cells(key)
        words = ["0" if is_missing(x) else trim(str(x)).lower() for x in cells]
        words = [words[i] for i in self._kept]
        if odd := sorted(set(words) - _YES - _NO):
            raise ValueError(
                f"argument --sample: {self._table.name(key)} must hold 1 or true in "
                "the rows of the sample, and 0, false or nothing in the others, got "
                f"{odd[0]!r}."
            )
        return np.array([word in _YES for word in words])

    def _list_names(self, labels):
        """Return a list of names of classes for each row, empty for no class."""
        values = [labels.values[row] for row in self._kept]
        if labels.cells is not None:
            return [names or [] for names in values]
        return [[] if value is None else [str(value)] for value in values]

    def estimate_shares(self, level):
        """Return the Prevalence of the classes."""
        labels = self._list_names(self._labels)
        given = [names for names, has in zip(labels, self.rows, strict=True) if has]
        guesses = list(map(self._list_names, self._guesses))
        classes = sorted({name for names in given for name in names})
        for name, guess in zip(self._prediction, guesses, strict=True):
            found = {one for names in guess for one in names}
            if not found & set(classes):
                raise ValueError(
                    f"argument --prediction: column {name!r} must hold the classes of "
                    f"{self._label!r}, such as {classes[0]!r}, got "
                    f"{min(found, default='none')!r}. Write both in the same way."
                )
        classes = sorted(
            {*classes, *(x for g in guesses for names in g for x in names)}
        )
        for message in describe_lookalikes(classes):  # of a label and a prediction
            if message not in self._table.messages:
                say(message)
        options = {"classes": classes, "n_pool": len(self.rows), **level}
        if self._groups is not None:
            options |= {"groups": self._groups[self.rows], "pool_groups": self._groups}
        if guesses:
            proba = np.stack([to_indicator(x, classes)[0] for x in guesses], axis=2)
            options |= {"proba": proba[self.rows], "pool_proba": proba}
        return estimate_prevalence(to_indicator(given, classes)[0], **options)

    def estimate_mean(self, level):
        """Return the MeanEstimate of the numbers."""
        if self._groups is not None:
            raise ValueError("argument --group: is not for --regression.")
        read = [self._labels, *self._guesses]
        columns = [[labels.values[row] for row in self._kept] for labels in read]
        y, *proxies = np.array(columns, dtype=float)
        if not proxies:
            return estimate_mean(y[self.rows], n_pool=len(self.rows), **level)
        proxy = np.stack(proxies, axis=1)
        return estimate_mean(y[self.rows], proxy[self.rows], proxy, **level)
