"""The settings of a project, which commands, page and Label Studio share."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from .._utils._checks import check_share
from ..annotators import ChatAnnotator
from ..stopping import AuditGoal

LOG = logging.getLogger("skactive.project")


@dataclass(frozen=True, eq=False)
class ProjectSettings:
    """What is labeled, by whom, and with which model.

    The commands, the page and Label Studio share this record. A :class:`Project` is one
    with a session; its parameters describe the fields. With Label Studio, the fields of
    the folder and of the model are used.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from skactive.project import ProjectSettings
    >>> settings = ProjectSettings("films.csv", "review", "tone", n_labels=100)
    >>> replace(settings, n_labels=200).n_labels
    200
    """

    file: str | PathLike
    text: str | Sequence[str] = ()
    label: str | Sequence[str] = ()
    _: KW_ONLY
    separator: str | None = None
    regression: bool = False
    classes: Sequence[Any] | Mapping[Any, Any] | None = None
    id: str | None = None
    suggest: str | None = None
    show: Sequence[str] = ()
    features: str | PathLike | None = None
    folder: str | PathLike | None = None
    n_labels: int | None = None
    until: str | None = None
    repeat: float = 0.0
    annotator: str | None = None
    coders: Sequence[str] = ()
    overlap: float | None = None
    strategy: str | None = None
    model: str | Sequence[str] | None = None
    max_length: int = 128
    prompt: str | Sequence[str] | None = None
    dimensions: int | None = None
    adapt: bool | None = None
    fine_tuning: bool = True
    machine: str | None = None
    machine_model: str | None = None
    max_requests: int | None = None
    max_tokens: int | None = None

    @property
    def file_(self) -> Path:
        """The file of the table."""
        return Path(self.file).expanduser()

    @property
    def is_large(self) -> bool:
        """Whether the texts stay in their files."""
        return self.features is not None or self.file_.is_dir()

    def check(self) -> None:
        """Raise a ValueError for settings that do not fit together."""
        if self.until is not None:
            AuditGoal(self.until).start()
            if self.regression:
                raise ValueError("'until' must be None with regression=True.")
        self.check_machine()
        check_share("overlap", self.overlap or 0.0, limits=(0, 1))
        names = [] if isinstance(self.coders, str) else [*self.coders]
        is_good = len(set(map(str, names))) == len(names) > 1
        if self.coders and not (is_good and all(map(_is_name, names))):
            raise ValueError(
                f"'coders' must be at least two different names, got {self.coders}."
            )
        if self.coders and self.annotator is not None:
            raise ValueError("'annotator' must be left out with coders=.")
        if self.features is None:
            if self.is_large:
                raise ValueError(
                    "'features' must name the features of a folder of files, which "
                    "are computed before, got None."
                )
            return
        if not Path(self.features).expanduser().is_dir():
            raise ValueError(
                f"'features' must be a folder, got {str(self.features)!r}, and there "
                "is none."
            )
        for name in ("suggest", "machine", "show", "adapt"):
            if getattr(self, name):
                raise ValueError(f"{name!r} must be left out with features=.")

    def make_machine(self, described: dict, folder: Path, **options: Any) -> Any:
        """Return the ChatAnnotator, whose answers are kept in a folder.

        `described` is a dict of class to a dict with "description" and "examples".
        """
        self.check_machine()
        if self.machine is None or len(described) < 2:
            raise ValueError(
                "'machine' must be None without classes to choose from, got "
                f"{self.machine!r}. Name them with classes=."
            )
        return ChatAnnotator(
            str(self.machine),
            str(self.machine_model),
            {name: x.get("description", "") for name, x in described.items()},
            examples=[
                (text, name)
                for name, about in described.items()
                for text in about.get("examples", ())
            ],
            cache=folder / "machine.jsonl",
            max_requests=self.max_requests,
            max_tokens=self.max_tokens,
            **options,
        )

    def check_machine(self) -> None:
        """Raise a ValueError for a machine without a model, or the reverse."""
        if (self.machine is None) != (self.machine_model is None):
            raise ValueError(
                "'machine' must be a URL together with a name, machine_model=; got "
                f"{self.machine!r} and {self.machine_model!r}. Pass both."
            )


def _is_name(name):
    """Whether something can be the name of a person."""
    return isinstance(name, str) and 0 < len(name.strip()) == len(name) <= 100


def say_cost(machine, texts):
    """Log where texts go, and how many."""
    cost = machine.estimate_cost(texts)
    LOG.info(
        f"{cost.n_requests:,} requests to {machine.host}, about {cost.n_tokens:,} "
        f"tokens; {cost.n_cached:,} answers are kept from before"
    )
