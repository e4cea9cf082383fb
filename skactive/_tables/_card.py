"""The card of a labeled table: what a paper says about labels and shares."""

from .._storage._fingerprint import collect_versions
from .._utils._format import escape_markdown, format_table
from ._writer import write_table

ESTIMATOR = (
    "Estimator",
    "difference (PPI++) with power tuning, corrected for the finite pool; intervals "
    "exact for labels alone, else Student's with errors not yet seen",
)


def dump_card(title, parts):
    """Return a card as Markdown; `parts` is a dict of title to (name, text) rows."""
    lines = [f"# {escape_markdown(title)}"]
    for part, rows in parts.items():
        cells = [[escape_markdown(str(cell)) for cell in row] for row in rows]
        lines += [f"## {part}", format_table(["", ""], cells, "markdown")]
    return "\n\n".join(lines) + "\n"


def list_software():
    """Return the row of the versions of the software."""
    versions = ", ".join(f"{x} {v}" for x, v in collect_versions().items() if v)
    return [("Versions", versions)]


def write_card(path, title, parts):
    """Write a card to a file, as a table if its name ends in .csv."""
    if path.suffix.lower() == ".csv":
        rows = [(part, *map(str, row)) for part in parts for row in parts[part]]
        columns = zip(("part", "name", "value"), zip(*rows, strict=True), strict=True)
        write_table(path, {name: list(cells) for name, cells in columns})
    else:
        path.write_bytes(dump_card(title, parts).encode("utf-8", "replace"))


def name_level(confidence_level):
    """Return the row of the confidence level of estimates."""
    return "Confidence", f"{100 * confidence_level:g} % for each interval"


def name_estimates(shares):
    """Return the estimates of a Prevalence or a MeanEstimate, dict of name."""
    if not hasattr(shares, "estimates"):
        return {"Mean": shares}
    return {
        f"Share of {name}" + (f" in {group}" if group is not None else ""): share
        for (group, name), share in shares.estimates.items()
    }
