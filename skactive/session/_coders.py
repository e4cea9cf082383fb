"""Several people and one text: what is hidden, how much they agree, what is settled."""

from collections import Counter
from dataclasses import replace

from scipy.stats import binomtest

from .._utils._labels import key_of, list_classes
from ..estimation import measure_agreement

_ABOUT = ("label", "annotator", "time", "way")  # of the answer to an item
SETTLED = "settled"  # the way of an answer that decides between those of others
_MIN_SHARED = 10  # texts that two people answered, before agreement is shown


def decide(answer, decision, between):
    """Return the answer of an item with a decision among the labels `between`, if any.

    It stands while every annotator gives one of these labels or the decision, unless
    several annotators agree on another label.
    """
    if decision is None:
        return answer
    keys = {key_of(one.label) for one in answer.given}
    chosen = key_of(decision.label)
    agreed = len(keys) == 1 < len(answer.given) and chosen not in keys
    if agreed or not keys <= {chosen, *map(key_of, between)}:
        return answer
    others = {"firsts": answer.firsts, "repeats": answer.repeats}
    return replace(decision, given=answer.given, **others)


def differs(answer):
    """Whether annotators gave other labels than each other, settled or not."""
    answers = answer.given
    return len(answers) > 1 and len({key_of(one.label) for one in answers}) > 1


def find_disputed(state):
    """Return the ids whose answers differ, without those that are settled, list."""
    answers = state.answers.copy().items()  # another thread may answer
    return [x for x, answer in answers if differs(answer) and answer.way != SETTLED]


def keep_unsettled(core, ids, label, annotator):
    """Return the ids that an annotator has not settled like this already.

    Raise a ValueError if the answers to one do not differ.
    """
    answers, new = core.state.answers, []
    for id in ids:
        answer = answers.get(id)
        if answer is None or not differs(answer):
            raise ValueError(f"'way' must be None, as no two answers to {id!r} differ.")
        is_same = (answer.way, answer.annotator) == (SETTLED, annotator)
        if not (is_same and key_of(answer.label) == key_of(label)):
            new.append(id)
    return new


def find_visible(core, annotator):
    """Return the answers that an annotator may see, dict of id to Answer."""
    answers = dict(core.state.answers)  # another thread may answer
    for id in core.queue.find_hidden(annotator):
        answers.pop(id, None)
    return answers


def describe_answer(core, id, answer, annotator):
    """Return what an item has of people, dict; `answer` is what the annotator may see.

    "said" are the answers of several people. Where two answer, each has an own note.
    """
    notes, shared = core.state.own_notes.get(id, {}), core.queue.find_shared([id])
    note = notes.get(annotator, "") if shared else core.state.notes.get(id, "")
    several = answer.given if answer is not None and len(answer.given) > 1 else ()
    said = [
        {"annotator": x.annotator, "label": x.label, "note": notes.get(x.annotator, "")}
        for x in several
    ]
    shown = {name: answer and getattr(answer, name) for name in _ABOUT}
    return shown | {"said": said, "note": note, "flag": id in core.state.flags}


def list_first(core):
    """Return answers that tell how much people agree, dict of id to dict of annotator.

    With an audit, several answers to a text are the first ones, which were given blind,
    of a text that is drawn at random for two people. Else they are the last ones.
    """
    answers, queue, rows = core.state.answers, core.queue, {}
    shared = {*queue.find_shared(answers)}
    for id, answer in answers.items():
        rows[id] = answer.given
        if queue.audit_every and queue.overlap:  # a third person may have seen them
            rows[id] = answer.blind[:2] if id in shared else answer.given[:1]
    return {id: {x.annotator: x.label for x in row} for id, row in rows.items()}


def say_agreement(core):
    """Return how much people agree, or why nobody knows, in words; or "".

    The interval of a share is about which texts were drawn. It does not hold what the
    choice of the person adds, which `find_widest` tells.
    """
    with core.lock:
        answers, overlap = list_first(core), core.queue.overlap
    several = [labels for labels in answers.values() if len(labels) > 1]
    if len(several) < _MIN_SHARED:
        so_far = f"{_MIN_SHARED} texts with two answers, {len(several)} so far"
        return f"agreement after {so_far}" * bool(overlap)
    agreement = measure_agreement(answers, target=core.target)
    pair = max(agreement.pairs, key=lambda pair: agreement.pairs[pair][2])
    first, second = sorted(pair, key=str)  # the same in each question
    both = [(x[first], x[second]) for x in several if {first, second} <= x.keys()]
    n, same = len(both), sum(key_of(one) == key_of(other) for one, other in both)
    low, high = binomtest(same, n).proportion_ci(method="wilson")
    said = f"{first} and {second} agree on {same} of {n} texts "
    said += f"({100 * same / n:.0f} %, {100 * low:.0f}-{100 * high:.0f} %)"
    if agreement.alpha is not None:
        low, high = agreement.alpha_interval
        said += f"; Krippendorff's alpha {agreement.alpha:.2f} ({low:.2f}-{high:.2f})"
    if core.target == "regression":
        return said
    kappa, interval, _ = agreement.pairs[pair]
    if kappa is not None:
        low, high = interval
        said += f", Cohen's kappa {kappa:.2f} ({low:.2f}-{high:.2f})"
    if same == n:
        return said
    name, one, other = find_widest(both)
    said += f"; of these texts, {100 * one:.0f} % are {name} according to {first}"
    said += f", {100 * other:.0f} % according to {second}: the choice of the person "
    return f"{said}adds ± {50 * abs(one - other):.1f} points to this share"


def find_widest(both):
    """Return the class whose shares differ most between two people, and its shares.

    `both` are pairs of their labels of n texts. If the one of them whose answers count
    is drawn at random, the shares p and q of a class add (p - q)^2 / 4 to the variance:
    with half a chance each, the share is (p - q) / 2 above or below the mean of both.
    """
    names = {key_of(x): x for x in list_classes([x for pair in both for x in pair])}
    sides = [
        Counter(map(key_of, list_classes(side))) for side in zip(*both, strict=True)
    ]
    one, other = sides
    key = max(names, key=lambda key: abs(one[key] - other[key]))
    return names[key], one[key] / len(both), other[key] / len(both)
