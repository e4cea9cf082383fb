"""Types of the options that estimators with an encoder share."""

from typing import Literal

Pooling = Literal["mean", "cls", "max", "last"]
Precision = Literal["auto", "float32", "bfloat16"]
MCDropout = Literal["head", "gaussian", "full"]
Schedule = Literal["linear", "polynomial"]
