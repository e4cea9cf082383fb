"""Figures that the paper of prepal.py prints."""

NAMES = {
    "sst2": "SST-2",
    "cola": "CoLA",
    "qnli": "QNLI",
    "qnli_dev": "QNLI",
    "ag_news": "AG News",
    "imdb": "IMDb",
}
# Table 3, BERT: AL+LR, PRepAL, AL+FT, in percent. EGL is in no table.
ORDER = ("SST-2", "QNLI", "CoLA", "AG News", "IMDb")
PAPER = {
    "random": [(), (), (86.9, 78.8, 78.6, 89.4, 89.6)],
    "entropy": [
        (84.2, 72.2, 76.7, 89.9, 88.3),
        (87.1, 79.0, 79.9, 90.3, 89.9),
        (88.1, 79.6, 80.0, 90.9, 90.7),
    ],
    "variation_ratio": [
        (84.2, 72.2, 76.7, 90.1, 88.3),
        (87.1, 79.0, 79.9, 90.6, 89.9),
        (87.8, 79.5, 79.8, 91.2, 90.7),
    ],
    "bald": [
        (83.7, 71.3, 76.7, 89.6, 87.6),
        (86.3, 78.2, 79.5, 90.2, 89.5),
        (85.6, 74.2, 79.6, 90.1, 90.6),
    ],
    "batchbald": [
        (84.0, 71.4, 77.6, 89.7, 87.7),
        (86.9, 77.9, 78.4, 90.1, 89.7),
        (86.3, 76.6, 79.6, 90.1, 90.3),
    ],
    "dal": [
        (82.7, 71.1, 75.8, 88.7, 86.9),
        (86.1, 77.0, 78.5, 88.9, 88.6),
        (87.7, 78.6, 79.1, 90.1, 90.3),
    ],
    "coreset": [
        (82.2, 68.3, 75.1, 88.8, 86.1),
        (85.1, 75.8, 76.8, 89.2, 88.5),
        (84.7, 77.4, 78.4, 90.2, 90.4),
    ],
}
PROTOCOLS = ("AL+LR", "PRepAL", "AL+FT")
PHASES = ("precomputation", "fit", "query", "final_training")
PAPER_LEDGER = {
    "AL+LR": ("261", "5", "356", "0.9", "0.5K"),
    "PRepAL": ("261", "5", "356", "7K", "7.5K"),
    "AL+FT": ("", "79K", "12K", "7K", "98K"),
}


def paper(strategy, protocol, data):
    """Look up the paper's figure, in percent; None if there is none."""
    figures = PAPER.get(strategy, [(), (), ()])[PROTOCOLS.index(protocol)]
    name = NAMES.get(data)
    return figures[ORDER.index(name)] if figures and name in ORDER else None


def name_of(data):
    return NAMES.get(data, data)
