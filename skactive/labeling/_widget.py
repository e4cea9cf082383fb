"""The notebook widget: the interface of the page, in the output of a cell."""

import threading
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..session import Desk, LabelingSession
from ._calls import call

try:
    import anywidget
    import traitlets
except ImportError as error:
    raise ImportError(
        'LabelingWidget needs anywidget: pip install "skactive[notebook]"'
    ) from error

PAGE = Path(__file__).parent / "_page"


class LabelingWidget(anywidget.AnyWidget):
    """Label the items of a session in a notebook.

    The widget shows the interface of the local page, see :func:`serve`. Every
    answer is on the disk before the next text is shown. The keys work while the focus
    is in the widget.

    Parameters
    ----------
    session : LabelingSession or Desk
        What to label. The session stays open and can be used from other cells.
    **options : Any
        Parameters of `Desk`: `n_labels`, `descriptions` and `source`. Only with a
        session.

    Attributes
    ----------
    desk : Desk
        What the widget works on.

    Raises
    ------
    ImportError
        If anywidget is missing.
    TypeError
        If `session` is neither a session nor a desk, or options are given with a desk.

    See Also
    --------
    skactive.LabelingSession : Keeps the answers.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skactive import ActiveLearner, LabelingSession
    >>> from skactive.labeling import LabelingWidget
    >>> learner = ActiveLearner(LogisticRegression(), random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     texts = ["a flood in the valley", "sunny all day"]
    ...     classes = ["disaster", "other"]
    ...     with LabelingSession(learner, texts, folder, classes=classes) as session:
    ...         widget = LabelingWidget(session, n_labels=2)  # shown by a notebook
    ...         state = widget.desk.state()
    ...         widget.close()
    >>> print(state["n_labeled"], "of", state["n_labels"], "labels")
    0 of 2 labels
    """

    _esm = PAGE / "labeling.js"
    _css = PAGE / "labeling.css"
    scope = traitlets.Unicode().tag(sync=True)
    _open = False

    def __init__(self, session: LabelingSession | Desk, **options: Any) -> None:
        self._own_desk = not isinstance(session, Desk)
        self.desk = _make_desk(session, options)
        # Calls may wait for a model; the kernel runs other cells in the meantime.
        self._workers = ThreadPoolExecutor(4, thread_name_prefix="skactive-widget")
        self._watcher: threading.Thread | None = None
        folder = self.desk.session.folder.encode()
        super().__init__(scope=sha256(folder).hexdigest()[:16])
        self.on_msg(self._receive)
        self._open = True

    def _receive(self, _, message, buffers):
        """Answer a message of the browser in a thread."""
        if message.get("method") == "listen":
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch, daemon=True)
                self._watcher.start()
            self.send({"version": self.desk.version()})
        else:
            self._workers.submit(self._answer, message)

    def _answer(self, message):
        status, content = call(self.desk, message.get("method"), message.get("args"))
        self.send({"call": message.get("call"), "status": status, "content": content})

    def _watch(self):
        """Send each new version until the widget is closed."""
        version = self.desk.version()
        while self._open:
            new = self.desk.wait(version, 1.0)
            if new != version and self._open:
                version = new
                self.send({"version": version})

    def close(self) -> None:
        """Remove the widget. The session stays open."""
        if self._open:
            self._open = False
            self._workers.shutdown(wait=False, cancel_futures=True)
            if self._own_desk:
                self.desk.close()
        super().close()


def _make_desk(session, options):
    if isinstance(session, Desk):
        if options:
            raise TypeError(
                f"options must be given to the Desk, got {sorted(options)} in addition "
                "to a Desk."
            )
        return session
    if not isinstance(session, LabelingSession):
        raise TypeError(
            f"'session' must be a LabelingSession or a Desk, got {session!r}."
        )
    return Desk(session, **{"source": "", **options})  # titled "Labeling"
