# %% [markdown]
# # Handwritten digits: 60,000 images in one pass
#
# **You learn** how an SVM for ten classes learns a large data set while it reads it once, how its
# test error falls with the images seen, and what support vectors look like.
#
# **You need** the extra `plots`, about 2 GB of memory, and the MNIST images: scikit-learn (`pip
# install scikit-learn`) downloads them from OpenML (15 MB), or `--data TRAIN TEST` names two
# Parquet files with 784 pixel columns and a column `label`. It takes about a minute, and a minute
# more when the learner is compiled first.

# %%
import argparse
import time
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pyarrow.parquet as pq

from streamsvm import LaRankClassifier, kernels

parser = argparse.ArgumentParser(allow_abbrev=False)
parser.add_argument("--data", nargs=2, help="two Parquet files")
parser.add_argument("--limit", type=int, help="images to learn, at least 1000")
options = parser.parse_known_args()[0]  # without those that a notebook is started with


def read(path):
    table = pq.read_table(path)
    pixels = [column.to_numpy() for column in table.drop(["label"]).columns]
    return np.stack(pixels, axis=1), table["label"].to_numpy()


if options.data:
    (X, y), (X_test, y_test) = map(read, options.data)
else:
    try:
        from sklearn.datasets import fetch_openml
    except ImportError:
        raise SystemExit("without --data: pip install scikit-learn") from None
    try:
        X, y = fetch_openml("mnist_784", version=1, as_frame=False, return_X_y=True)
    except OSError as error:
        raise SystemExit(f"the data cannot be downloaded ({error}): give --data FILES") from None
    X, X_test, y, y_test = X[:60_000], X[60_000:], y[:60_000].astype(int), y[60_000:].astype(int)
X, X_test = np.float32(X / 255)[: options.limit], np.float32(X_test / 255)

# %% [markdown]
# ## Learn once, test now and then
#
# `learn_many` takes a batch of rows, and gives the same model as one row at a time. After some of
# the images we look at the test set: 10,000 images by other writers.
#
# The kernel says how alike two images are. The learner keeps the images that decide where the
# borders between the digits run, its *support vectors*, and a cache of their kernel values. The
# default of 200 MB is too small for the end of this stream: with `cache_mb=1000` values need not be
# computed again and again.

# %%
model = LaRankClassifier(kernels.RBF(gamma=0.02), C=10, cache_mb=1000, seed=1)
marks = [n for n in (0, 1000, 2000, 4000, 8000, 15_000, 30_000, 60_000) if n <= len(X)]
errors, seconds = [], 0.0
for start, stop in pairwise(marks):
    began = time.perf_counter()
    model.learn_many(X[start:stop], y[start:stop])
    seconds += time.perf_counter() - began
    errors.append(100 * np.mean(np.array(model.predict_many(X_test)) != y_test))
found = model.support_vectors()
print(f"{stop:,} images learnt in {seconds:.0f} s, {len(found.labels):,} of them kept")
print(f"test error: {errors[0]:.1f} % after {marks[1]:,} images, {errors[-1]:.1f} % at the end")

# %% [markdown]
# After 1,000 images, about 9 % of the test images are wrong, after 60,000 about 1.5 %; the curve is
# still falling. About one image in five was kept.
#
# ## Support vectors
#
# Of each digit, the picture shows the three support vectors with the largest coefficients. They are
# the images that pull hardest at the borders: badly written ones, or ones that look like another
# digit.

# %%
figure = plt.figure(figsize=(9, 3.5), layout="constrained")
left, right = figure.subfigures(1, 2)
axes = left.subplots()
axes.plot(marks[1:], errors, "o-")
axes.set(xlabel="images learnt", ylabel="test error in %", xscale="log", ylim=(0, None))
cells = right.subplots(5, 6).reshape(10, 3)
for digit, row in enumerate(cells):
    own = np.flatnonzero(np.array(found.labels) == digit)
    pulls = found.coefficients[own, found.classes.index(digit)]
    for cell, i in zip(row, own[np.argsort(-pulls)], strict=False):
        cell.imshow(found.rows[i].reshape(28, 28), cmap="gray_r")
        cell.axis("off")
figure.savefig("digits_one_pass.png", dpi=100)
