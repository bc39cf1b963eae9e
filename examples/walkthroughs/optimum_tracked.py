# %% [markdown]
# # The optimum tracked: how far is an online model from a batch SVM?
#
# **You learn** what the duality gap and the certificate say, and see both beside the true distance
# from the best possible model.
#
# **You need** the extra `plots`; scikit-learn, if it is installed, checks the result. The data come
# with River. It takes about 10 seconds, and a minute more when the learner is compiled first.

# %%
import copy

import matplotlib.pyplot as plt
import numpy as np
from river import datasets

from streamsvm import TrackingMonitor, TrackingSVMClassifier

try:
    from sklearn.svm import SVC
except ImportError:
    SVC = None

events = list(datasets.Bananas())  # 5,300 points in the plane, two classes that overlap
X = np.array([list(x.values()) for x, _ in events])
y = np.array([label for _, label in events])

# %% [markdown]
# ## The objective
#
# Training an SVM means to make a number small, the *objective*: a penalty for complicated borders
# plus the mean loss of the examples. The loss of an example is 0 if it lies on its side of the
# border and not too near, and grows with its distance from there. A batch SVM sees all examples at
# once and finds the smallest value possible, the *optimum*. An online model sees each example once,
# and stays a little above.


# %%
def objective(model, n):
    """Return the objective over the first n examples, for C = 1."""
    kept = model.support_vectors()
    penalty = 0.5 * kept.coefficients @ model.decision_function_many(kept.rows)
    f = model.decision_function_many(X[:n])
    return penalty / n + np.maximum(0, 1 - np.where(y[:n], f, -f)).mean()


# %% [markdown]
# ## Learn, and measure
#
# After each example, the learner makes `K` training steps on examples that it draws at random from
# those seen so far. The monitor measures, after each 100 examples:
#
# * the *duality gap*: the objective is at most so much above the optimum. It is computed from the
#   model alone, without knowing the optimum;
# * its mean since the start, and the *certificate*: an upper bound of this mean, which the learner
#   computes while it learns. (A single gap may be above both.)
#
# In practice the optimum is not known. Here, a copy of the model is trained until it is at the
# optimum (`finish`), after each 100 examples. So the true distance is known, too.

# %%
model = TrackingSVMClassifier(C=1, K=10, seed=1)
monitor = TrackingMonitor(model, every=100)
distances = []
for n in range(100, len(X) + 1, 100):
    monitor.learn_many(X[n - 100 : n], y[n - 100 : n])
    optimal = copy.deepcopy(model)
    optimal.finish()
    distances.append(objective(model, n) - objective(optimal, n))
now = monitor.get()
print(f"mean distance {np.mean(distances):.3f} <= mean gap {now['averaged_gap']:.3f}", end=" ")
print(f"<= certificate {now['certificate']:.3f}")

# %% [markdown]
# On average, the model was about 0.016 above the optimum, which fell from 0.5 to 0.25. The mean
# gap, which the learner estimates as 0.027, says that it was at most so much. The certificate says
# that this mean is surely at most 0.030: with 95 % probability, at all moments, for any order of
# the examples.
#
# ## Is it really the optimum of a batch SVM?
#
# scikit-learn's `SVC` solves nearly the same problem: its decision function has a constant, the
# bias, as well.

# %%
if SVC is not None:
    svc = SVC(C=1, gamma=model.kernel_.gamma).fit(X, y)
    f = svc.decision_function(X)
    penalty = 0.5 * svc.dual_coef_[0] @ (f[svc.support_] - svc.intercept_)
    optimum = penalty / len(X) + np.maximum(0, 1 - np.where(y, f, -f)).mean()
    print(f"objective {objective(model, len(X)):.3f}, after finish", end=" ")
    print(f"{objective(optimal, len(X)):.4f}, of scikit-learn's SVC {optimum:.4f}")

# %% [markdown]
# The two optima agree to about three digits.

# %%
examples = monitor.history.column("n_examples")
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
axes.plot(examples, monitor.history.column("certificate"), "tab:red", label="certificate")
axes.plot(examples, monitor.history.column("averaged_gap"), "tab:blue", label="mean gap")
axes.plot(examples, monitor.history.column("gap"), "tab:blue", alpha=0.4, label="gap")
axes.plot(examples, distances, "k.", label="true distance from the optimum")
axes.set(xlabel="examples", ylabel="objective above the optimum", yscale="log")
figure.legend(loc="outside upper center", ncols=4, frameon=False)
figure.savefig("optimum_tracked.png", dpi=100)
