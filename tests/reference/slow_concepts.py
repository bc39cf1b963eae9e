"""Concept labels in plain Python: the search, its early updates, and the alignment of bags."""

import numpy as np

NOTHING = "-"


class SlowConcepts:
    """Weights by feature; `constraints` are all that were met, as differences of features."""

    def __init__(self, is_free, C, window, relations):
        self.is_free, self.C, self.window, self.relations = is_free, C, window, relations
        self.w, self.late, self.counts = {}, {}, {}
        self.n, self.dual, self.n_wrong, self.constraints = 0, 0.0, 0, []

    def related(self, universe, c):
        return [c, *(universe.get(name, {}).get(c, NOTHING) for name in self.relations)]

    def near(self, words, i):
        return range(max(0, i - self.window), min(len(words), i + self.window + 1))

    def of_words(self, words, universe, i, c):
        used = [c in universe.get(name, {}).values() for name in self.relations]
        values = [*self.related(universe, c), *used]
        return [
            ("word", a, o - i, words[o], value)
            for o in self.near(words, i)
            for a, value in enumerate(values)
        ]

    def of_neighbour(self, words, universe, i, c, j, d):
        if d == NOTHING or j not in self.near(words, i):
            return []
        found = [("near", j - i, d, c)]
        for b, theirs in enumerate(self.related(universe, d)):
            for a, ours in enumerate(self.related(universe, c)):
                if theirs == ours != NOTHING:
                    found += [("link", j - i, o - i, words[o], a, b) for o in self.near(words, i)]
        return found

    def value(self, features, is_mean=False):
        late = 1.0 / self.n if is_mean and self.n else 0.0
        return sum(self.w.get(f, 0.0) - late * self.late.get(f, 0.0) for f in features)

    def search(self, words, universe, candidates, choose, is_mean=False):
        """Call choose(scores, labels) for each action until it returns None; return the labels."""
        labels = {}
        scores = {
            (i, c): self.value(self.of_words(words, universe, i, c), is_mean)
            for i in range(len(words))
            for c in candidates
        }
        while scores:
            first = min(i for i, _ in scores)
            open_ = {a: s for a, s in scores.items() if self.is_free or a[0] == first}
            if (action := choose(open_, labels)) is None:
                break
            j, d = action
            labels[j] = d
            scores = {a: s for a, s in scores.items() if a[0] != j}
            for i, c in scores:
                features = self.of_neighbour(words, universe, i, c, j, d)
                scores[i, c] += self.value(features, is_mean)
        return [labels.get(i) for i in range(len(words))]

    def predict(self, words, universe, candidates):
        return self.search(
            words, universe, candidates, lambda scores, _: max(scores, key=scores.get), True
        )

    def learn(self, words, universe, candidates, concepts):
        def features(action, labels):
            i, c = action
            found = self.of_words(words, universe, i, c)
            for j, d in labels.items():
                found += self.of_neighbour(words, universe, i, c, j, d)
            return found

        def choose(scores, labels):
            good = {a: s for a, s in scores.items() if a[1] == concepts[a[0]]}
            best = max(good, key=good.get)
            wrong = max((a for a in scores if a not in good), key=scores.get)
            if scores[best] <= scores[wrong]:
                self.n_wrong += 1
                for action in sorted(good):
                    self.step(features(action, labels), features(wrong, labels))
                return None
            if scores[best] < scores[wrong] + 1.0:
                self.step(features(best, labels), features(wrong, labels))
            return best

        self.search(words, universe, candidates, choose)
        self.n += 1

    def step(self, good, wrong):
        change = {}
        for features, sign in ((good, 1), (wrong, -1)):
            for f in features:
                change[f] = change.get(f, 0) + sign
        self.constraints.append(change)
        square = sum(x * x for x in change.values())
        loss = 1.0 - sum(self.w.get(f, 0.0) * x for f, x in change.items())
        if loss <= 0.0 or not square:
            return
        alpha = min(self.C, loss / square)
        self.dual += alpha * loss - 0.5 * alpha**2 * square
        for f, x in change.items():
            self.w[f] = self.w.get(f, 0.0) + alpha * x
            self.late[f] = self.late.get(f, 0.0) + self.n * alpha * x

    def primal(self):
        """Return the primal objective of the weights, on the constraints met."""
        losses = [
            max(0.0, 1.0 - sum(self.w.get(f, 0.0) * x for f, x in change.items()))
            for change in self.constraints
        ]
        return 0.5 * sum(w * w for w in self.w.values()) + self.C * sum(losses)

    def aligned(self, words, universe, candidates, bag, prior=10.0):
        """Return a concept for each word, of a list of as many."""
        things = sorted(bag, key=candidates.index)
        counts = [self.counts.setdefault(word, {}) for word in words]
        shares = np.array(
            [
                [(own.get(c, 0.0) + 0.01) / (1.0 + sum(own.values())) for c in things]
                for own in counts
            ]
        )
        for _ in range(3):
            shares = shares / shares.sum(0)
            shares = shares / shares.sum(1)[:, None]
        for own, row in zip(counts, shares, strict=True):
            for c, share in zip(things, row, strict=True):
                own[c] = own.get(c, 0.0) + share
        left = list(things)

        def choose(scores, labels):
            best = {
                (i, c): s + prior * shares[i, things.index(c)]
                for (i, c), s in scores.items()
                if c in left
            }
            action = max(best, key=best.get)
            left.remove(action[1])
            return action

        is_free, self.is_free = self.is_free, True
        found = self.search(words, universe, candidates, choose)
        self.is_free = is_free
        return found
