"""scikit-learn's ``learning_curve``: as a table of means, as a table of folds, and as JSON with the arrays."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import learning_curve

x, y = load_iris(return_X_y=True)
sizes, train, test = learning_curve(
    LogisticRegression(max_iter=500), x, y, cv=4, train_sizes=[0.3, 0.6, 1.0], shuffle=True, random_state=0
)
Path("means").mkdir()
with Path("means/curve.csv").open("w", newline="", encoding="utf-8") as file:
    table = csv.writer(file)
    names = ["train_score_mean", "train_score_std", "test_score_mean", "test_score_std"]
    table.writerow(["train_size", *names])
    columns = (sizes, train.mean(axis=1), train.std(axis=1), test.mean(axis=1), test.std(axis=1))
    table.writerows(zip(*(column.tolist() for column in columns), strict=True))
Path("folds").mkdir()
with Path("folds/curve.csv").open("w", newline="", encoding="utf-8") as file:
    table = csv.writer(file)
    folds = range(train.shape[1])
    names = [f"{part}_score_{fold}" for part in ("train", "test") for fold in folds]
    table.writerow(["train_size", *names])
    rows = zip(sizes.tolist(), train.tolist(), test.tolist(), strict=True)
    table.writerows([size, *a, *b] for size, a, b in rows)
Path("arrays").mkdir()
arrays = {"train_sizes": sizes.tolist(), "train_scores": train.tolist(), "test_scores": test.tolist()}
Path("arrays/curve.json").write_text(json.dumps(arrays), encoding="utf-8")
