"""Files that survive a crash: whole writes, journals, locks."""
