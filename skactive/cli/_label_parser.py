"""The parsers of the commands `label`, `encode` and `predict`."""

from pathlib import Path

from ._options import TABLE, add_columns, add_count, add_model, as_names

_TABLES = f"{TABLE}; or a folder of such files"


def add_label(commands):
    label = commands.add_parser(
        "label",
        help="label the texts of a table in a page or a terminal",
        description="Label the texts of a table. Rows that have a label are training "
        "data, and blank rows are shown, the most useful first. The file is never "
        "changed: the labeled table is written next to it. The same command continues "
        "later.",
    )
    label.add_argument("file", metavar="FILE", help=_TABLES)
    data = label.add_argument_group("data")
    add_columns(data)
    classes = data.add_mutually_exclusive_group()
    classes.add_argument(
        "--classes",
        metavar="A,B,C",
        type=as_names,
        help="the classes, separated by commas (default: those of the file)",
    )
    classes.add_argument(
        "--classes-file",
        metavar="FILE",
        help="a class per line and, after tabs, its description and examples; or JSON",
    )
    data.add_argument(
        "--id",
        metavar="COL",
        help="with --features, its column of ids (default: row numbers)",
    )
    data.add_argument(
        "--suggest", metavar="COL", help="a column of labels to show as suggestions"
    )
    _add_work(label)
    front = label.add_argument_group("front end")
    front.add_argument(
        "--terminal", action="store_true", help="label in the terminal, without a page"
    )
    add_count(front, "--port", None, "port of the page (default: a free one)")
    front.add_argument(
        "--no-browser", action="store_true", help="print the address of the page only"
    )
    label.set_defaults(run=("_label", "run_label"))


def _add_work(label):
    """Add the options of the session and its model."""
    work = label.add_argument_group("work")
    add_count(
        work,
        "--n-labels",
        None,
        "number of labels by people to reach; given ones do not count",
    )
    work.add_argument("--annotator", metavar="NAME", help="who answers")
    work.add_argument(
        "--folder",
        metavar="FOLDER",
        help="where answers, features and the model are kept (default: FILE with the "
        "suffix .skactive, and FILE.LABEL.skactive for a second column of labels)",
    )
    work.add_argument(
        "--strategy",
        metavar="NAME",
        help="(default: margin, and greedy_sampling for numbers)",
    )
    work.add_argument(
        "--features",
        metavar="FOLDER",
        type=Path,
        help="what `skactive encode` wrote: for a folder, or a file larger than memory",
    )
    add_model(work)
    work.add_argument(
        "--no-fine-tuning",
        action="store_true",
        help="keep the model of the session instead of fine-tuning the encoder at the "
        "end",
    )


def add_predict(commands):
    predict = commands.add_parser(
        "predict",
        help="label a table with a saved model",
        description="Add the predictions of a model to a table. The file is never "
        "changed: the table is written next to it.",
    )
    predict.add_argument(
        "model", metavar="MODEL", help="a folder that `skactive label` wrote"
    )
    predict.add_argument("file", metavar="FILE", help=_TABLES)
    predict.add_argument(
        "--text",
        metavar="COL",
        nargs="+",
        help="its column of texts, or two for pairs (default: as in the labeled table)",
    )
    predict.add_argument(
        "--out", metavar="FILE", type=Path, help="(default: FILE with .predicted)"
    )
    predict.set_defaults(run=("_label", "run_predict"))


def add_encode(commands):
    encode = commands.add_parser(
        "encode",
        help="compute the features of a large table, for `skactive label`",
        description="Compute the features of all texts of a table and write them into "
        "a folder. Neither texts nor features need to fit into memory. The same "
        "command goes on after an interruption.",
    )
    encode.add_argument("file", metavar="PATH", help=_TABLES)
    encode.add_argument(
        "--text",
        metavar="COL",
        nargs="+",
        required=True,
        help="its column of texts, or two for pairs",
    )
    encode.add_argument("--out", metavar="FOLDER", type=Path, required=True)
    add_model(encode)
    encode.add_argument(
        "--static",
        action="store_true",
        help="means of token vectors, hundreds of times faster and less accurate; "
        "--model is then one of model2vec",
    )
    encode.add_argument(
        "--dtype",
        choices=["float16", "float32"],
        default="float16",
        help="(default: %(default)s)",
    )
    encode.set_defaults(run=("_large", "run_encode"))
