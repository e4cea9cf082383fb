"""A process that trains SetFit on few labels and predicts.

    python few_shot_setfit.py FOLDER

FOLDER holds problem.json: the folder of the model, a seed, texts and integer labels to
train on, and texts to predict. Writes answer.json: probabilities and processor seconds
of training. The settings are those of SetFit's own results: one epoch of 20 pairs of
each kind per text, batches of 16.
"""

import json
import sys
from pathlib import Path
from time import process_time

import torch
from datasets import Dataset
from setfit import SetFitModel, Trainer, TrainingArguments


def main(folder):
    problem = json.loads((folder / "problem.json").read_text())
    torch.set_num_threads(1)
    start = process_time()
    model = SetFitModel.from_pretrained(problem["model"])
    arguments = TrainingArguments(
        output_dir=str(folder / "checkpoints"),
        batch_size=16,
        num_epochs=1,
        num_iterations=20,
        seed=problem["seed"],
        report_to="none",
        save_strategy="no",
    )
    train = Dataset.from_dict({"text": problem["texts"], "label": problem["labels"]})
    Trainer(model=model, args=arguments, train_dataset=train).train()
    seconds = process_time() - start
    proba = model.predict_proba(problem["test"], as_numpy=True).tolist()
    answer = {"proba": proba, "classes": model.model_head.classes_.tolist()}
    (folder / "answer.json").write_text(json.dumps({**answer, "seconds": seconds}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
