"""What a person may do, and by which keys: the one list behind every front end."""

# By name: keys of the page, its keys where letters search among many classes, what is
# typed at the prompt, and what it does. A button of the page shows the first key.
COMMANDS = {
    "answer": ("1-9", "1-9", "key or name", "choose a class"),
    "number": ("0-9", "", "number", "type the number"),
    "find": ("/", "letters /", "", "find a class by its name; Enter takes the first"),
    "save": ("Enter", "Enter", "", "save or keep the answer"),
    "accept": ("Space", "Space", "Enter", "accept the prediction or the suggestion"),
    "other": ("m", "*", "*", "accept the other one of the two"),
    "skip": ("s →", "→", "s", "skip"),
    "undo": ("u ← Backspace Ctrl+Z", "← Backspace Ctrl+Z", "u", "undo"),
    "flag": ("f", ".", "f", "flag"),
    "note": ("n", ",", "n TEXT", "note"),
    "example": ("e", ";", "", "make the text, or what is selected, an example"),
    "why": ("w", "-", "", "why: words and texts behind the prediction"),
    "alike": ("a", "+", "", "label similar texts at once"),
    "recent": ("↑", "↑", "=", "earlier answers"),
    "check": ("", "", "!", "doubtful answers"),
    "random": ("", "", "%", "random texts only, or no longer"),
    "back": ("Esc", "Esc", "", "back from an earlier text; remove all check marks"),
    "add": ("", "", "+ NAME", "add a class, or + NAME: DESCRIPTION"),
    "help": ("?", "?", "?", "help"),
    "finish": ("", "", "q", "finish"),
}
_KEYS = "123456789abcdeghijklmoprtvwxyz"  # of classes; s, u, f, n and q are typed


def assign_keys(names):
    """Return a key for each class, "" for none; a class that is a digit has its own."""
    digits = {str(name) for name in names} & {*"0123456789"}
    keys = (key for key in _KEYS if key not in digits)
    return [str(name) if str(name) in digits else next(keys, "") for name in names]
