"""What a person may do in a session: the one class behind every front end."""

import os
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

from .._utils._containers import take_row
from .._utils._labels import as_class, list_classes, predict_labels
from .._utils._pipelines import ReadCounter
from .._utils._repeatable import find_stop, synchronized
from .._utils._sklearn import check_count
from .._utils._system import Closing, lower_priority
from ._arguments import SHOWN, Way, checked
from ._codebook import describe_classes, predict_shown, record_given
from ._coders import describe_answer, find_disputed, find_visible, say_agreement
from ._commands import COMMANDS
from ._doubts import Doubts
from ._journal import check_last, describe_event
from ._leases import Leases
from ._lists import describe_changed, keep_listed, list_recent, record_answers
from ._lookup import explain, find_of_class, find_similar, find_texts
from ._machine import annotate_later, compare_suggestions
from ._quality import Quality
from ._themes import find_themes

MOST_TOP = 1000  # classes whose probability is returned with an item to label

_Json = dict[str, Any]
_Who = str | None


class Desk(Closing):
    """What a person may do in a labeling session, for front ends to show.

    The local page, the terminal and the notebook widget are views of this class. Every
    method returns JSON values, and can be called from any thread. Answers are on the
    disk when a method returns. Texts are chosen in the background while people answer.

    Parameters
    ----------
    session : LabelingSession
        A session over texts or pairs of texts. Open it with ``refit="background"``, so
        that nobody waits for training.
    n_labels : int, default=None
        Number of labels to reach.
    until : str, default=None
        What to estimate how exactly, such as "shares:3"; see
        :class:`skactive.stopping.AuditGoal`. For shares, texts are drawn at random
        only, unless somebody chose otherwise with `draw`.
    descriptions : dict of label to str or dict, default=None
        A description for each class, or a dict with "description" and "examples". They
        are recorded, and replace what people wrote only where they are new.
    source : str, default=None
        Name of the data, for the title. Defaults to the name of the session's folder.
    check_words : callable, default=None
        Called with "class", "annotator" or "note" and each such name or note before it
        is recorded. Raises a ValueError for what a result cannot hold.
    given : iterable of labels, default=()
        Labels from before the session. They are counted with the answers of each class.
    columns : callable, default=None
        Called with the id of an item; returns a dict of name to str to show with it.
    coders : sequence of str, default=()
        Names of people. The page then has an address for each, where only this person
        answers.
    forecast : callable, default=None
        Called with the seconds for each label in which an encoder learned, or None;
        returns about how many minutes the end takes, None if that is unknown. Without
        it, the minutes are unknown.

    Notes
    -----
    `client` identifies a front end, such as a tab of a browser. `annotator` is the name
    of the person, and defaults to the annotator of the session. Methods that change
    something return the new `state`, or the item that they changed. What others said
    of a text that waits for a blind answer of the annotator is not returned.

    Examples
    --------
    A front end shows an item, and reports the answer:

    >>> import tempfile
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from skactive import ActiveLearner, LabelingSession
    >>> from skactive.session import Desk
    >>> model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    >>> learner = ActiveLearner(model, random_state=0)
    >>> texts, classes = ["good", "bad", "fine"], ["yes", "no"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     session = LabelingSession(learner, texts, folder, classes=classes)
    ...     with session, Desk(session, n_labels=2) as desk:
    ...         item = desk.next("tab 1")[0]
    ...         state = desk.answer(item["id"], "yes", "tab 1")
    >>> print(state["n_labeled"], "of", state["n_labels"], "labels")
    1 of 2 labels
    """

    def __init__(
        self,
        session: Any,
        *,
        n_labels: int | None = None,
        until: str | None = None,
        descriptions: Mapping[Any, Any] | None = None,
        source: str | None = None,
        check_words: Callable[[str, str], Any] | None = None,
        given: Iterable[Any] = (),
        columns: Callable[[Any], dict[str, str]] | None = None,
        forecast: Callable[[Any], float | None] | None = None,
        coders: Sequence[str] = (),
    ) -> None:
        self.session, self.coders = session, tuple(coders)
        self._core = core = session._core
        self._lock, self._state, self._models = core.lock, core.state, core.models
        self._check_words = check_words or (lambda kind, text: None)
        self.n_labels = None if n_labels is None else check_count("n_labels", n_labels)
        record_given(core, descriptions or {})
        self._source = os.path.basename(session.folder) if source is None else source
        self._given = list_classes(given)
        self._columns = columns or (lambda id: {})
        self._forecast = forecast or (lambda pace: None)
        self._predicted: dict[Any, Any] = {}  # id -> what was shown before its answer
        self._shown: dict[int, str] = {}  # what of a machine was shown, by the look
        self._reader = ReadCounter(self._models.estimator)
        self._leases = Leases(self._state, core.queue, self._lock)
        self._jobs: dict[Any, Any] = {}  # what runs in the background, by its name
        self._worker = ThreadPoolExecutor(2)
        self._slow = ThreadPoolExecutor(1, initializer=lower_priority)
        # The list is for people who look at it: it comes before training and estimates.
        self._list_worker = ThreadPoolExecutor(1, "", lower_priority, (5,))
        self._error: Any = None, None  # a message, and the model when it came
        self._failures: list[str] = []  # of machines
        self._stop = find_stop()  # ends their requests
        self._doubts = Doubts(core)
        parts = core, self._doubts, n_labels, until
        self._quality = Quality(*parts, lambda goal, *x: goal.find_widest(session, *x))

    @property
    def target(self) -> str:
        """What is labeled: "single-label", "multi-label" or "regression"."""
        return self.session.target

    # What a front end shows -----------------------------------------------------------

    @checked
    def state(self, annotator: str | None = None) -> _Json:
        """Return everything that is shown with the item.

        Parameters
        ----------
        annotator : str, default=None
            The person.

        Returns
        -------
        state : dict
            The target, classes with their keys and counts, progress, the model, the
            agreement with the suggestions that were shown, and whether it "leads" that
            with the predictions, the estimate in one line, whether texts are drawn at
            random only (None if none is), the last answers with the prediction that was
            shown, the "coders", the number of texts that are "disputed", what `undo`
            would undo, the classes that were "added", "older", answers that a new class
            or description may change, and "commands": by name, the keys of the page,
            those for more than nine classes, what is typed at the prompt, and what the
            command does.
        """
        state, models, who = self._state, self._models, self._who(annotator)
        answers = find_visible(self._core, who)
        labels = {id: answer.label for id, answer in answers.items()}
        if self._quality.is_due(n := len(state.answers)):
            self._in_background("estimate", self._quality.compute, n, worker=self._slow)
        return {
            "source": self._source,
            "annotator": who,
            "version": self.version(),
            "seq": state.seq,
            "target": self.target,
            "classes": describe_classes(
                self._core, labels.values(), self._given, self._quality.shares
            ),
            "closed": state.classes is not None,
            "n_labeled": n,
            "n_labels": self.n_labels,
            "n_pool": len(state.pool),
            "n_skipped": len(state.skipped),
            "n_flagged": len(state.flags),
            "n_checked": self._doubts.n_labels,
            "n_doubtful": self._doubts.count(),
            "n_disputed": len(find_disputed(state)),
            "coders": self.coders,
            "random_only": self._core.queue.random_only,
            "model": {**models.describe(), "error": self._find_error()},
            "suggestions": compare_suggestions(self._core, labels, self._predicted),
            "estimate": self._quality.line(n, who),
            "recent": list_recent(self._core, who, self._predicted, answers),
            "undo": describe_event(state.last_undoable(who)),
            **describe_changed(self._core, self._doubts, answers),
            "done": not self._core.queue.has_more(who),
            "commands": COMMANDS,
        }

    def _who(self, annotator):
        """Return the name of an annotator; None and "" stand for the session's."""
        return annotator or self._core.annotator

    def version(self) -> int:
        """Return a number that changes whenever `state` does."""
        self._check_later()
        models, doubts = self._models, self._doubts
        stamp = self._state.seq, id(models.newest().learner), round(models.encoded, 2)
        parts = doubts.n_labels, doubts.count(), id(doubts.model), self._find_error()
        return zlib.crc32(repr((*stamp, self._quality.n_labels, *parts)).encode())

    def wait(self, version: int, timeout: float) -> int:
        """Wait until the version is another one, or the time has passed.

        Parameters
        ----------
        version : int
            The version that the front end has.
        timeout : float
            Longest time to wait, in seconds.
        """
        end = time.monotonic() + timeout
        while (now := self.version()) == version and time.monotonic() < end:
            time.sleep(0.2)
        return now

    @checked
    def next(
        self, client: str, annotator: str | None = None, n_queries: int = 2
    ) -> list[_Json]:
        """Return the next items of a front end, the most useful first.

        An item is given to one front end at a time, and the same items are returned
        until they are answered. Items of a front end that was silent for 90 seconds can
        be given to another.

        Parameters
        ----------
        client, annotator : str
            The front end and the person.
        n_queries : int, default=2
            Largest number of items.

        Returns
        -------
        items : list of dict
            Empty when no item is left.
        """
        who = self._who(annotator)
        ids = self._take(self._leases.take, self._ask, client, who, n_queries)
        return self._items(ids, who, n_top=MOST_TOP)

    def _take(self, take, ask, client, annotator, n):
        """Return ids for a front end; where few wait, others are chosen meanwhile."""
        while True:
            ids, n_waiting = take(client, annotator, n)
            if n_waiting >= n + 5:
                return ids
            self._leases.check_annotators(annotator)
            before = self._jobs.get(("ask", annotator))
            job = self._in_background(("ask", annotator), ask, annotator)
            # An older job may have looked before the last answer.
            if n_waiting or not (job.result() or job is before):
                return ids

    def _ask(self, annotator):
        """Choose items in the background; return whether there were any."""
        try:
            before = {*self._state.open}
            while batch := self.session.ask(annotator=annotator):
                if batch.number not in before:
                    return True
            return False
        except Exception as exc:
            self._note_error(exc)
            return bool(self.session.ask(annotator=annotator, refit=False))

    @checked
    def item(self, id: Any, held_out: bool = False, annotator: _Who = None) -> _Json:
        """Return an item with its label, its prediction, its note and its flag.

        Parameters
        ----------
        id : str or int
            Id of the item.
        held_out : bool, default=False
            Whether the prediction is that of a model that was trained without the
            answer, as in `check`, where there is one. The item then is "held_out".
        annotator : str, default=None
            The person.

        Returns
        -------
        item : dict
            "probability" is that of the predicted class; it is None for a list of
            classes, where "top" has that of each, and for a number. "read" is the
            number of characters that the encoder reads, None for all.
            Nothing of a machine is shown with an item that is "blind", because the
            audit can draw it, or it waits for an answer once more: its way is then
            "repeat", and its answer is not shown. "said" has the answers of several
            people, a list of dict: "annotator", "label" and "note".
        """
        said = [self._doubts.predict(id)] if held_out else [None]
        return self._items([id], annotator, said if any(said) else None, MOST_TOP)[0]

    def _items(self, ids, annotator, predicted=None, n_top=5):
        """Return items; by default the model predicts all of them at once."""
        state, queue = self._state, self._core.queue
        with self._lock:
            ids = state.pool.read_ids(ids, name="id") if ids else []
            rows = state.pool.positions(ids)
            looks, hidden = state.pool.find_looks(rows), queue.find_blind(ids)
            texts = [take_row(state.pool.X, row) for row in rows.tolist()]
        held_out, items, who = predicted is not None, [], self._who(annotator)
        answers = find_visible(self._core, who)
        predicted = predicted or zip(*self._predict(texts, n_top), strict=True)
        parts = zip(ids, texts, looks, hidden, predicted, strict=True)
        for id, text, look, blind, (label, score, top) in parts:
            again, (suggestion, _) = state.comes_again(id), state.find_machine(id)
            answer, blind = None if again else answers.get(id), blind or again
            if blind:
                label, score, top, suggestion = None, None, [], None
            if answer is None and label is not None:
                self._predicted[id] = label, score, state.seq
            what = "none" if label is None else "prediction"
            if suggestion is not None:
                what = "suggestion"
            self._shown[look] = max(what, self._shown.get(look, what), key=SHOWN.index)
            items.append(
                {
                    "id": id,
                    "text": text if isinstance(text, str) else list(text),
                    "prediction": label,
                    "probability": None if isinstance(label, list) else score,
                    "top": top,
                    "blind": blind,
                    "held_out": held_out,
                    "columns": self._columns(id),
                    "read": self._reader.count(text),
                    "suggestion": suggestion,
                    **describe_answer(self._core, id, answer, who),
                    **({"way": "repeat"} if again else {}),
                }
            )
        return items

    @checked
    def history(
        self,
        query: str = "",
        start: int = 0,
        n_items: int = 50,
        where: Any = None,
        only_ids: bool = False,
        annotator: _Who = None,
    ) -> _Json:
        """Return answered and skipped items, the newest first.

        Parameters
        ----------
        query : str, default=""
            Part of the text or of the label, in any case.
        start : int, default=0
            Number of items to leave out.
        n_items : int, default=50
            Largest number of items.
        where : dict, default=None
            Further conditions, all optional: "label", a class of the item; "by", the
            name of an annotator who answered it; "only", one of "flag", "note",
            "skipped", "unlabeled", "disputed", whose answers differ and are not
            settled, and "doubtful", which has the order of `check`; "before", a class
            that was added or described after the answer, where the items come first
            that a model without the answer gives or takes this class, the most likely
            first; and "likely", such a class, for these alone. Behind them are items of
            the audit that have the same labels, as nothing is predicted for them. If no
            model knows the class, they are all.
        only_ids : bool, default=False
            Whether to return the ids alone, but those of all items. `item` returns the
            rest of each.
        annotator : str, default=None
            The person.

        Returns
        -------
        page : dict
            "total", the number of items, "items", and "annotators", all who answered.
        """
        with self._lock:
            people = [one.annotator for one in self._state.list_answers()]
        page = self._page(None, start, n_items, only_ids, where, annotator, query)
        return {**page, "annotators": list(dict.fromkeys(people))}

    @checked
    def search(
        self,
        query: str,
        start: int = 0,
        n_items: int = 20,
        where: Any = None,
        how: Literal["words", "regex", "meaning"] = "words",
        only_ids: bool = False,
        annotator: _Who = None,
    ) -> _Json:
        """Return items of the pool whose text contains a string, in any case.

        Parameters
        ----------
        query : str
            The string. An empty one finds items by `where` only.
        start : int, default=0
            Number of items to leave out.
        n_items : int, default=20
            Largest number of items.
        where : dict, default=None
            Further conditions, as in `history`.
        how : {"words", "regex", "meaning"}, default="words"
            With "regex", `query` is a regular expression. With "meaning", it is a
            phrase, and the 200 texts with the most similar features are found, the most
            similar first.
        only_ids : bool, default=False
            As in `history`.
        annotator : str, default=None
            The person.

        Returns
        -------
        page : dict
            "total", the number of items, and "items".

        Raises
        ------
        ValueError
            If `query` is not a regular expression.
        TypeError
            For "meaning" without features that need no training.
        """
        ids = () if where is None else self._state.pool.ids
        ids = find_texts(self._core, query, how) if query else ids
        return self._page(ids, start, n_items, only_ids, where, annotator)

    def _page(self, ids, start, n_items, only_ids, where, annotator, query=""):
        """Return a part of a list of items."""
        who = self._who(annotator)
        ids = keep_listed(self._core, self._doubts, ids, where, query, who)
        part = ids[start : start + n_items]
        items = [{"id": id} for id in ids] if only_ids else self._items(part, who)
        return {"total": len(ids), "items": items}

    @checked
    def check(self, n_items: int = 20, annotator: _Who = None) -> _Json:
        """Return answers that models without them contradict, the most doubtful first.

        Before these come answers that took less than half a second and differ from a
        prediction of 90 % and more that was shown. The others are computed in the
        background after each model, and this returns the last list at once.

        Parameters
        ----------
        n_items : int, default=20
            Largest number of items.
        annotator : str, default=None
            The person.

        Returns
        -------
        page : dict
            "items", whose "prediction" and "probability" are of a model that was
            trained without the answer; "total", their number; "n_labels", the number of
            labels that the list is of, None before the first list; and "computing",
            whether a newer one is on its way.

        Raises
        ------
        TypeError
            If the estimator cannot be used to find doubtful answers.
        """
        self._check_later()
        rows = self._doubts.list_rows()
        predicted = [self._doubts.show(*said) for _, _, *said in rows[:n_items]]
        return {
            "items": self._items([x for x, *_ in rows[:n_items]], annotator, predicted),
            "total": len(rows),
            "n_labels": self._doubts.n_labels,
            "computing": self._doubts.is_behind,
        }

    @checked
    def similar(self, id: Any, n_items: int = 20, annotator: _Who = None) -> _Json:
        """Return unlabeled items of one class, the most similar to an item first.

        The class is the label of the item, or else its prediction, and the model
        predicts it for all of them. The similarity is the cosine of the features of the
        model. Items that the audit can draw soon are left out.

        Parameters
        ----------
        id : str or int
            Id of the item.
        n_items : int, default=20
            Largest number of items.
        annotator : str, default=None
            The person.

        Returns
        -------
        page : dict
            "label", the class, and "items".

        Raises
        ------
        ValueError
            If there is no prediction yet.
        TypeError
            If the model has no classes or no features.
        """
        answers = find_visible(self._core, self._who(annotator))
        label, ids = find_similar(self._core, id, n_items, answers)
        return {"label": label, "items": self._items(ids, annotator)}

    @checked
    def more(
        self,
        label: Any,
        doubtful: bool = False,
        n_items: int = 20,
        annotator: _Who = None,
    ) -> _Json:
        """Return unlabeled items that the model takes for a class.

        Parameters
        ----------
        label : str, int or bool
            Name of the class.
        doubtful : bool, default=False
            Whether to return those of which the model is least certain whether they are
            of the class, rather than those of which it is most certain that they are.
        n_items : int, default=20
            Largest number of items.
        annotator : str, default=None
            The person.

        Returns
        -------
        page : dict
            "items".

        Raises
        ------
        ValueError
            If there is no prediction yet, or none of this class.
        TypeError
            If the model has no classes or no probabilities.
        """
        ids = find_of_class(self._core, label, doubtful, n_items)
        return {"items": self._items(ids, annotator)}

    @checked
    def themes(self, n_themes: int = 12, annotator: _Who = None) -> _Json:
        """Return groups of similar texts, the largest first.

        Up to 5,000 texts that the model has read, drawn at random, are grouped by
        k-means on features that no label has changed. Items that the audit can draw are
        left out.

        Parameters
        ----------
        n_themes : int, default=12
            Number of groups.
        annotator : str, default=None
            The person.

        Returns
        -------
        found : dict
            "themes", a list of dict: "size", the share of the texts; "words", those
            that more texts of the group have than of the others; "labels" and
            "predictions", the most frequent classes with their counts; and "items",
            unlabeled ones, the nearest to the center first.

        Raises
        ------
        ValueError
            If fewer texts than groups have been read.
        TypeError
            Without features that need no training.
        """
        pairs = self._list_worker.submit(find_themes, self._core, n_themes).result()
        show = self._items
        return {"themes": [x | {"items": show(ids, annotator)} for x, ids in pairs]}

    @checked
    def explain(self, id: Any, annotator: _Who = None) -> _Json:
        """Return what the prediction of an item depends on.

        Each word is left out in turn, and the model predicts again. It runs in the
        background, and this waits for it.

        Parameters
        ----------
        id : str or int
            Id of the item.
        annotator : str, default=None
            The person.

        Returns
        -------
        about : dict
            "prediction", and "probability", that of the predicted class, or the mean of
            several; "words", a list for each of the first words: number of the text,
            start, end, and by how much the probability falls without the word; "error",
            why there are none; and "items", the labeled ones that are the most similar,
            with the cosine as "similarity".

        Raises
        ------
        ValueError
            If there is no prediction yet.
        """
        explanation = self._list_worker.submit(explain, self._core, id).result()
        near = explanation.pop("neighbors")
        items = self._items([other for other, _ in near], annotator)
        for item, (_, similarity) in zip(items, near, strict=True):
            item["similarity"] = similarity
        return {**self.item(id, False, annotator), **explanation, "items": items}

    @checked
    def quality(self, annotator: _Who = None) -> _Json:
        """Return how good the model is, as far as the answers tell.

        Parameters
        ----------
        annotator : str, default=None
            The person.

        Returns
        -------
        quality : dict
            "sentence" about the pool; "accuracy", with "interval", or None;
            "n_labels" of the estimate and "n_audited" items of the audit; "curve", a
            list of labels, accuracy and interval for each estimate of this process;
            "gain", a sentence on more labels; "goal", how many more answers the goal
            needs, or each share within 5 points; "why" there are no shares; "agreement"
            of people, a sentence; "repeats", a sentence on the answers to items that
            came again, or ""; "minutes" that the end takes, None if they are unknown;
            and "classes", with "name",
            "count", "share", that of the pool, "recall" and "precision", each a share
            and its interval or None, and "missing", the labels that it should still
            get. With 95 % confidence, all intervals of recall and precision are right
            at once.
        """
        quality = self._quality.describe(self.state(annotator), self._forecast)
        return quality | {"agreement": say_agreement(self._core)}

    def _check_later(self):
        """Look for doubtful answers in the background, once for each model."""
        if self._doubts.is_behind:
            self._in_background("check", self._doubts.find, worker=self._list_worker)

    # What a person does ---------------------------------------------------------------

    @checked
    def answer(
        self,
        id: Any,
        label: Any,
        client: str,
        annotator: str | None = None,
        seconds: float | None = None,
        way: Way | None = None,
        example: str = "",
    ) -> _Json:
        """Record a label; it is on the disk when this returns.

        An answer that is sent twice is recorded once. If the same label is given again
        to an item of `check`, the item is not listed any more; this is recorded once,
        too.

        Parameters
        ----------
        id : str or int
            Id of the item.
        label : str, int, float, bool or list of str
            One of the classes, a list of them for several classes per text, or a number
            for regression.
        client, annotator : str
            The front end and the person.
        seconds : float, default=None
            How long the person needed.
        way : {"bulk", "more", "review", "repeat", "settled"}, default=None
            How the answer came about: with several others at once, to an item of
            `more`, to one of `check`, or to one that came again. It is kept with the
            answer. "settled" decides between answers that differ: it is the label of
            the item, and not an answer of the person. It ends when somebody gives a
            label that was not among these, or all agree on another one.
        example : str, default=""
            The item, or a part of it, as an example of its class for people.

        Raises
        ------
        ValueError
            If the item is unknown or the label is not one of the classes.
        OSError
            If the disk is full or fails. Nothing was then recorded.
        """
        return self.answer_all([id], label, client, annotator, seconds, way, example)

    @checked
    def answer_all(
        self,
        ids: list[Any],
        label: Any,
        client: str,
        annotator: str | None = None,
        seconds: float | None = None,
        way: Way | None = None,
        example: str = "",
    ) -> _Json:
        """Record one label for several items; `undo` takes all of it back at once.

        Items that have this label of the person already are left out.

        Parameters
        ----------
        ids : list of str or int
            Ids of the items.
        label, client, annotator, way, example
            As in `answer`.
        seconds : float, default=None
            How long the person needed for all of them.

        Raises
        ------
        ValueError
            If an item is unknown or the label is not one of the classes. Nothing was
            then recorded.
        """
        who = self._who(annotator)
        ids = self._state.pool.read_ids(ids)
        said = self._core, self._doubts, ids, label, who, self._shown, way
        new = record_answers(*said, seconds=seconds, example=example)
        if way is None and self.target == "single-label":
            for id in self._predicted.keys() & {*new}:
                self._doubts.add_quick(id, label, seconds, *self._predicted[id][:2])
        return self._after(ids, client, who)

    @checked
    def skip(self, id: Any, client: str, annotator: str | None = None) -> _Json:
        """Set an item aside.

        Parameters
        ----------
        id : str or int
            Id of the item.
        client, annotator : str
            The front end and the person.
        """
        if id not in self._state.skipped:
            self.session.skip(id, unasked=True, annotator=self._who(annotator))
        return self._after([id], client, annotator)

    def _after(self, ids, client, annotator):
        with self._lock:
            self._leases.hear(client)
            for id in ids:
                self._leases.give(self._who(annotator), id, None)
        return self.state(annotator)

    @checked
    def undo(self, seq: int, client: str, annotator: str | None = None) -> _Json | None:
        """Undo the last event of an annotator, and return its item.

        Parameters
        ----------
        seq : int
            Number of the event, from the entry "undo" of the state.
        client : str
            Identifies the front end, which gets the item back.
        annotator : str, default=None
            The person.

        Returns
        -------
        item : dict or None
            The item that waits for an answer again. None if the event has several.

        Raises
        ------
        ValueError
            If this is not the event that would be undone, because another front end
            was faster.
        """
        with self._lock:
            who = self._who(annotator)
            check_last(self._state, seq, who)
            ids = self.session.undo(annotator=who).get("ids", ())
            if len(ids) != 1:
                return None
            self._leases.give(who, ids[0], client)
        return self.item(ids[0], False, annotator)

    @checked
    def flag(self, id: Any, on: bool = True, annotator: str | None = None) -> _Json:
        """Flag an item, or remove its flag.

        Parameters
        ----------
        id : str or int
            Id of the item.
        on : bool, default=True
            Whether the item has a flag.
        annotator : str, default=None
            The person.
        """
        self.session.flag(id, on, annotator=self._who(annotator))
        return self.item(id, False, annotator)

    @checked
    def note(self, id: Any, text: str, annotator: str | None = None) -> _Json:
        """Set the note of an item; an empty text removes it.

        Parameters
        ----------
        id : str or int
            Id of the item.
        text : str
            The note.
        annotator : str, default=None
            The person.
        """
        self.session.note(id, text, annotator=self._who(annotator))
        return self.item(id, False, annotator)

    @checked
    def add_class(
        self,
        name: Any,
        annotator: str | None = None,
        description: str = "",
        examples: Sequence[str] = (),
    ) -> _Json:
        """Add a class.

        Parameters
        ----------
        name : str
            Name of the class.
        annotator : str, default=None
            The person.
        description : str, default=""
            What people and the model should know about the class.
        examples : sequence of str, default=()
            Texts of the class.

        Raises
        ------
        ValueError
            If the class exists, or its name is empty.
        """
        name = as_class(name, self.session.known_classes)
        with self._core.recording() as answers:
            answers.add_class(name, self._who(annotator), description, examples)
        return self.state(annotator)

    @checked
    def edit_class(
        self,
        name: Any,
        annotator: str | None = None,
        *,
        new: Any = None,
        description: str | None = None,
        examples: Sequence[str] | None = None,
        taken: Sequence[str] | None = None,
        place: int | None = None,
    ) -> _Json:
        """Change a class; what is None stays, and `undo` reverses the rest.

        Parameters
        ----------
        name : str
            Name of the class.
        annotator : str, default=None
            The person.
        new : str, default=None
            Another name. That of another class merges the two, and joins what
            describes them.
        description : str, default=None
            What people and the model should know about the class.
        examples : sequence of str, default=None
            Texts of the class, for people and the model.
        taken : sequence of str, default=None
            Texts of the pool as examples for people. The model has their labels.
        place : int, default=None
            Its place among the classes, and so its key; the first is 0.
        """
        new = new if new is None else as_class(new, self.session.known_classes)
        entry = {"description": description, "examples": examples, "taken": taken}
        with self._core.recording() as answers:
            answers.edit_class(name, self._who(annotator), new, place, **entry)
        return self.state(annotator)

    @checked
    def remove_class(self, name: Any, annotator: str | None = None) -> _Json:
        """Remove a class that has no labels; `undo` reverses it.

        Parameters
        ----------
        name : str
            Name of the class.
        annotator : str, default=None
            The person.

        Raises
        ------
        ValueError
            If the class has labels, or fewer than two classes were left.
        """
        with self._core.recording() as answers:
            answers.remove_class(name, self._who(annotator))
        return self.state(annotator)

    @checked
    def draw(self, random_only: bool, annotator: str | None = None) -> _Json:
        """Choose how texts are drawn from now on; the session remembers it.

        Parameters
        ----------
        random_only : bool
            Whether all are drawn at random, for shares that are soon exact, rather than
            chosen by the strategy, for a better model.
        annotator : str, default=None
            The person.

        Raises
        ------
        ValueError
            If the session has no audit.
        """
        self._core.queue.draw_at_random(random_only, self._who(annotator))
        return self.state(annotator)

    @checked
    @synchronized
    def release(self, client: str) -> None:
        """Return the items of a closed front end to the others.

        Parameters
        ----------
        client : str
            Identifies the front end.
        """
        self._leases.release(client)

    def annotate(self, annotator: Any) -> None:
        """Have a machine answer in the background; its answers become suggestions.

        Parameters
        ----------
        annotator : annotator
            See `LabelingSession.annotate`. The state says if it fails. It stops when
            the desk or the session is closed.
        """
        annotate_later(self._core, annotator, self._failures, self._stop)

    def close(self) -> None:
        """Stop the work in the background. The session stays open."""
        self._stop.set()
        for worker in (self._worker, self._slow, self._list_worker):
            worker.shutdown(cancel_futures=True)

    # Parts of the state ---------------------------------------------------------------

    def _predict(self, texts, n_top):
        """Return labels, scores and best classes, as `predict_labels` does."""
        try:
            return predict_shown(self._core, texts, n_top)
        except Exception as exc:  # a model that fails must not keep people from working
            self._note_error(exc)
            return predict_labels(None, texts, None, self.target)

    def _note_error(self, exc):
        self._error = f"{type(exc).__name__}: {exc}", self._models.newest().learner

    def _find_error(self):
        """Return why features, the last training or the last query failed, or None."""
        if (why := self._models.encoder_error) is not None:
            return why
        message, learner = self._error
        is_now = learner is self._models.newest().learner
        return (self._failures or [message if is_now else None])[-1]

    @synchronized
    def _in_background(self, name, function, *args, worker=None):
        """Return the future of a job, which is started unless it runs already."""
        self._jobs = {key: job for key, job in self._jobs.items() if not job.done()}
        if name not in self._jobs:
            self._jobs[name] = (worker or self._worker).submit(function, *args)
        return self._jobs[name]
