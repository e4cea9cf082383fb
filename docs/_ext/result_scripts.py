"""The script of benchmarks/ that makes the tables and pictures of each page."""

SCRIPTS = {
    "adapted_features": "adapted_features.py",
    "adapted_loop": "labels_needed.py",
    "anchors": "anchors.py",
    "claims": "papers/own_claims.py",
    "eindor2020": "papers/eindor2020.py",
    "few_label_fine_tuning": "few_label_tuning.py",
    "few_shot": "few_shot.py",
    "griesshaber2020": "papers/griesshaber2020.py",
    "hart": "papers/hart.py",
    "labels_needed": "labels_needed.py",
    "more_data": "labels_needed.py",
    "other_data": "labels_needed.py",
    "peer_sets": "peer_sets.py",
    "peers": "peer_loops.py",
    "prepal": "papers/prepal.py",
    "prepal_labels": "papers/prepal.py",
    "strategies": "strategy_tables.py",
    "summary": "summary.py",
    "wang": "papers/wang.py",
}
