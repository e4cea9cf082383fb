"""Force the second implementation in a process that a test started."""

import os

if os.environ.get("SKACTIVE_TEST_SYSTEM") == "win32":
    import like_windows

    like_windows.force()
