"""The session of a project: where it is, and with which options it is opened."""

import warnings

from .._storage._files import Lock
from ..session import LabelingSession, PoolChangedError
from ._record import (
    ONLY_IF,
    check_record,
    plain_folder,
    read_record,
    show,
    write_record,
)

_BATCH = 5  # items chosen at a time: few, so that they are of the newest model
AUDIT_EVERY = 10  # of so many items, one is drawn at random to measure the accuracy
_MAX_SIMILARITY = 0.95
# The warning of a session if somebody added labels to the table, and did nothing else.
_OTHER_LABELS = (
    "'learner' is not the one that this session used so far: labels of the first fit"
    r"[^;]*(; sha256 [^;]*)?\. This is noted"
)


def open_session(project, learner, classes):
    """Return the session of a project, once the folder is known to be its own."""
    project.make_folder()
    lock = Lock(project.folder_ / "lock", f"the project in {show(project.folder_)!r}")
    try:
        check_record(project.folder_, project._columns)
        condition, before = project.only_if, read_record(project.folder_).get(ONLY_IF)
        if condition is None and before is not None:
            raise ValueError(
                f"{show(project.folder_)} is for texts with the label {before[1]!r} of "
                f"{before[0]!r} only. Open both questions, with only_if=; the shares "
                "are in the card that the end writes."
            )
        depends = {} if condition is None else {ONLY_IF: condition}
        write_record(project.folder_, {**project._columns, **depends})
        options: dict = {"annotator": project.annotator, "overlap": project.overlap}
        options |= {"max_adapted_pool": None} if project.adapt else {}
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", _OTHER_LABELS)
            session = LabelingSession(
                learner.set_params(batch_size=_BATCH),
                project.texts,
                project.folder_ / "session",
                refit="background",
                encode=project.table.encode,
                audit_every=AUDIT_EVERY,
                repeat=project.repeat,
                max_similarity=_MAX_SIMILARITY,
                classes=classes,
                multi_label=project.target == "multi-label",
                **options,
            )
    except PoolChangedError as exc:
        raise ValueError(
            f"{str(project.file_)!r} must hold the labeled texts of "
            f"{show(project.folder_)} as they were: {exc.fault}. Restore these texts, "
            "or use folder=NEW."
        ) from exc
    finally:
        lock.release()
    if project.folder_ != plain_folder(project.file_):
        project.messages.append(
            f"the answers are in {show(project.folder_)}; the labeled table will be "
            f"{project.output}"
        )
    return session
