"""The bridge to Label Studio: the command `skactive label-studio` is its face."""
