"""Command lines for the tests of the commands."""


def override(command, options):
    """Return a command line in which `options` take the place of equal ones.

    An option that is given twice is an error, so a test that changes one leaves the
    usual one out.
    """
    kept, is_kept = [], True
    for word in map(str, command):
        if word.startswith("--"):
            is_kept = word not in options
        if is_kept:
            kept.append(word)
    return [*kept, *options]
