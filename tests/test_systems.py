"""What differs between systems is in one module; text has one encoding and line end."""

import ast

from .test_architecture import TREES, _name

HOME = "_utils/_system.py"
MODULES = {"fcntl", "grp", "msvcrt", "pty", "pwd", "resource", "select", "signal"}
MODULES |= {"termios", "tty", "winreg", "_winapi"}
ATTRIBUTES = {
    "mmap": ("MADV_", "MAP_", "PROT_"),
    "platform": ("mac_ver", "machine", "release", "system", "uname", "win32_ver"),
    "shutil": ("chown", "move"),
    "socket": ("AF_UNIX", "SO_EXCLUSIVEADDRUSE", "SO_REUSE"),
    "sys": ("getwindowsversion", "platform"),
    "os": (
        *("chmod", "chown", "fchmod", "fchown", "lchmod", "lchown", "umask"),
        *("fork", "kill", "killpg", "openpty", "pidfd_", "wait"),
        *("link", "mkfifo", "mknod", "readlink", "symlink"),
        *("nice", "getpriority", "setpriority", "sched_", "getloadavg"),
        *("fdatasync", "posix_", "statvfs", "sync", "O_BINARY", "O_DIRECTORY"),
        *("getegid", "geteuid", "getgid", "getuid", "setsid", "setpgid", "getpgid"),
        *("get_terminal_size", "name", "rename", "replace", "startfile", "uname"),
    ),
}
METHODS = {"chmod", "group", "hardlink_to", "lchmod", "madvise", "owner", "symlink_to"}
# With one argument: str.replace has two, and datetime.replace has keywords.
MOVES = {"rename", "replace"}
OF_PROCESSES = {"creationflags", "pass_fds", "preexec_fn", "start_new_session"}


def find_calls(tree):
    """Return what a module uses that not all systems have, or that differs there."""
    calls = []
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                calls += [x.name for x in names if x.name in MODULES]
            case ast.ImportFrom(module, names, level) if not level:
                calls += [module] * (module in MODULES)
                starts = ATTRIBUTES.get(module, ())
                calls += [x.name for x in names if x.name.startswith(starts or ("?",))]
            case ast.Attribute(ast.Name(module), name) if module in ATTRIBUTES:
                calls += [f"{module}.{name}"] * name.startswith(ATTRIBUTES[module])
            case ast.Call(ast.Attribute(attr=name), [_], []) if name in MOVES:
                calls.append(f".{name}")
            case ast.Call(ast.Attribute(attr=name)) if name in METHODS:
                calls.append(f".{name}")
            case ast.keyword(name) if name in OF_PROCESSES:
                calls.append(name)
    return calls


def find_text(tree):
    """Return the calls that leave an encoding or the ends of lines to the system."""
    calls = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        named = {x.arg for x in node.keywords}
        is_method = isinstance(node.func, ast.Attribute)
        parts = [x for argument in node.args for x in ast.walk(argument)]
        texts = [x.value for x in parts if isinstance(x, ast.Constant)]
        modes = [x for x in texts if isinstance(x, str) and set(x) <= set("rwaxbt+")]
        is_file = name == "open" and (modes or "encoding" in named or not is_method)
        is_read = name == "read_text" and not (node.args or "encoding" in named)
        if is_read or name == "write_text":
            calls.append(name)
        elif is_file and not any("b" in mode for mode in modes):
            writes = any(set(mode) & set("wax") for mode in modes)
            wanted = {"encoding", "newline"} if writes else {"encoding"}
            calls += ["open"] * (not wanted <= named)
        elif "text" in named and "encoding" not in named and name in ("run", "Popen"):
            calls.append(name)
    return calls


def test_one_module_has_what_differs_between_systems():
    calls = {_name(path): find_calls(tree) for path, tree in TREES.items()}
    assert calls.pop(HOME)
    assert {name: found for name, found in calls.items() if found} == {}


def test_texts_are_the_same_on_all_systems():
    calls = {_name(path): find_text(tree) for path, tree in TREES.items()}
    assert {name: found for name, found in calls.items() if found} == {}


def test_a_call_elsewhere_would_be_found():
    source = (
        "import signal, os\nfrom os import replace, path\nfrom fcntl import flock\n"
        "if os.name == 'nt' or sys.platform == 'linux':\n    os.replace(a, b)\n"
        "path.replace(b)\ntext.replace('a', 'b')\nday.replace(tzinfo=None)\n"
        "os.posix_fallocate(1, 0, 2)\ns.setsockopt(a, socket.SO_REUSEADDR, 1)\n"
        "path.chmod(0o600)\nm.madvise(mmap.MADV_DONTNEED)\nos.path.join(a, b)\n"
        "Popen([], preexec_fn=f)\n"
    )
    assert sorted(find_calls(ast.parse(source))) == [
        *(".chmod", ".madvise", ".replace", "fcntl", "mmap.MADV_DONTNEED", "os.name"),
        *("os.posix_fallocate", "os.replace", "preexec_fn", "replace", "signal"),
        *("socket.SO_REUSEADDR", "sys.platform"),
    ]


def test_a_text_without_an_encoding_would_be_found():
    source = (
        "open(p)\nopen(p, 'rb')\nopen(p, 'w', encoding='utf-8')\nsession.open()\n"
        "open(p, 'w', encoding='utf-8', newline='')\np.open('a')\np.write_text('a')\n"
        "p.read_text()\np.read_text('utf-8')\nzip.open(entry)\n"
        "run([], text=True)\nrun([], text=True, encoding='utf-8')\n"
    )
    expected = ["open", "open", "open", "read_text", "run", "write_text"]
    assert sorted(find_text(ast.parse(source))) == expected
