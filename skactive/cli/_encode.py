"""The command `encode`: features of tables larger than memory, for `label`."""

from ..project import encode_table
from ._parser import one_or_several, show_line


def run_encode(file, text, folder, **options):
    """Run the command `encode`."""
    n_texts, width = encode_table(file, one_or_several(text), folder, **options)
    show_line(f"{folder.expanduser()}: {width} features of {n_texts:,} texts")
    return 0
