#!/usr/bin/env python3
"""Writes intervals.json and comparisons.json: what scipy says, for interval_test.cpp and
comparison_test.cpp.

    pip install scipy; python tests/search/stats/goldens.py

Tango's interval is not in scipy: here it comes from its definition, the differences that the score
test with the constrained maximum of the likelihood (found numerically) does not reject.
"""
import json
import math
import random
from pathlib import Path

from scipy import optimize, stats

Z = stats.norm.ppf(0.975)


def score(lost, gained, n, delta):
    """(lost - gained - n delta) over its standard error under the hypothesis."""
    even = n - lost - gained

    def minus_log_likelihood(q):  # q = share of gained, q + delta of lost
        total = 0
        for count, p in ((lost, q + delta), (gained, q), (even, 1 - 2 * q - delta)):
            if count:
                total -= count * (0 if p >= 1 else math.log(max(p, 1e-300)))
        return total

    low, high = max(0, -delta), (1 - delta) / 2
    best = optimize.minimize_scalar(minus_log_likelihood, bounds=(low, high), method="bounded",
                                    options={"xatol": 1e-13}).x
    # The likelihood may be largest at a border, which the bounded search only approaches.
    q = min((low, best, high), key=minus_log_likelihood)
    variance = n * (2 * q + delta * (1 - delta))
    return (lost - gained - n * delta) / variance**0.5


def tango(lost, gained, n):
    def edge(level):
        if score(lost, gained, n, 1 - 1e-9) > level:
            return 1.0
        if score(lost, gained, n, -1 + 1e-9) < level:
            return -1.0
        return optimize.brentq(lambda d: score(lost, gained, n, d) - level, -1 + 1e-9, 1 - 1e-9, xtol=1e-12)
    return edge(Z), edge(-Z)


def main():
    random.seed(5)
    paired = [(0, 0, 100), (0, 0, 12), (5, 0, 100), (0, 5, 100), (9, 2, 44), (50, 50, 200), (1, 0, 2),
              (200, 0, 200), (3, 7, 1319)]
    for _ in range(20):
        n = random.randint(3, 500)
        lost = random.randint(0, n)
        paired.append((lost, random.randint(0, n - lost), n))
    shares = [(0, 10), (10, 10), (1, 1), (37, 100), (5, 1319)]
    means = [[random.gauss(0.1, s) for _ in range(n)] for n, s in ((2, 1), (3, .1), (12, 1e-3), (400, 5))]
    golden = {
        "paired": [[*case, *tango(*case)] for case in paired],
        "share": [[*case, *stats.binomtest(*case).proportion_ci(0.95, "wilson")] for case in shares],
        "mean": [{"values": v, "interval": list(stats.t.interval(0.95, len(v) - 1, loc=stats.tmean(v),
                                                                 scale=stats.sem(v)))} for v in means],
    }
    write("intervals.json", golden)
    write("comparisons.json", comparisons())


def write(name, golden):
    Path(__file__).with_name(name).write_text(json.dumps(golden, default=float) + "\n")


def holm(p_values):
    """By the definition: the largest, over all claims at most as large, of p times those left."""
    m = len(p_values)
    return [min(1, max(q * (m - sum(r < q for r in p_values)) for q in p_values if q <= p)) for p in p_values]


def comparisons():
    random.seed(9)
    mcnemar = [(0, 0), (1, 0), (0, 6), (9, 3), (3, 9), (20, 20), (130, 190), (700, 1)]
    binary = []
    for lost, gained, n in ((0, 0, 100), (5, 0, 100), (9, 3, 200), (3, 9, 40), (60, 20, 300)):
        bound = optimize.brentq(lambda d: score(lost, gained, n, d) + stats.norm.ppf(0.95), -1 + 1e-9, 1 - 1e-9,
                                xtol=1e-12)
        binary.append({"lost": lost, "gained": gained, "n": n, "bound": bound,
                       "p": [[d, stats.norm.cdf(score(lost, gained, n, d))] for d in (0.01, 0.05, 0.2)]})
    paired = []
    for n, shift in ((2, 0.5), (3, 0.0), (12, 0.05), (150, 0.01), (150, -0.02)):
        first = [round(random.random(), 3) for _ in range(n)]
        second = [round(min(1, max(0, a - shift + random.gauss(0, 0.1))), 3) for a in first]
        losses = [a - b for a, b in zip(first, second)]
        test = stats.ttest_rel(first, second)
        one_sided = stats.ttest_rel(first, second, alternative="less")
        paired.append({
            "first": first, "second": second, "p": test.pvalue, "interval": list(test.confidence_interval(0.95)),
            "standard_error": stats.sem(losses), "bound": one_sided.confidence_interval(0.95).high,
            "non_inferiority": [[d, stats.ttest_1samp(losses, d, alternative="less").pvalue] for d in (0, .02, .3)],
        })
    skewed = [round(random.expovariate(1) ** 3, 4) for _ in range(40)]
    boot = stats.bootstrap((skewed,), lambda x, axis: x.mean(axis=axis), n_resamples=400_000, method="percentile",
                           batch=10_000, rng=1).confidence_interval
    families = [[0.01, 0.04, 0.03], [0.5], [0.02, 0.02, 0.02, 0.9], [0.3, 0.001, 0.0125, 0.9, 0.04]]
    return {
        "mcnemar": [[lost, gained, stats.binomtest(lost, lost + gained).pvalue if lost + gained else 1.0]
                    for lost, gained in mcnemar],
        "binary": binary, "paired": paired, "bootstrap": {"values": skewed, "interval": list(boot)},
        "holm": [{"p": p, "adjusted": holm(p)} for p in families],
    }


if __name__ == "__main__":
    main()
