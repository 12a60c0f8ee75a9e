"""Learners that are compared together often, by a name: `bncli compare DATA --preset papers`. Strings only."""

from __future__ import annotations

FAST = (
    "nb map=--structure nb --param map",
    "tan map=--structure tan --param map",
    "kdb2 hdp=--structure kdb --k 2 --param map --smoothing hdp",
    "skdb hdp=--structure skdb --param map --smoothing hdp",
    "tan acll=--structure tan --structure-score acll --param acll",
    "nb weighted=--structure nb --param weighted",
    "tan weighted=--structure tan --param weighted",
)
"""Closed forms, and the default configuration."""

PAPERS = (
    "nb map=--structure nb --param map",
    "tan map=--structure tan --param map",
    "kdb1 map=--structure kdb --k 1 --param map",
    "nb weighted=--structure nb --param weighted",
    "tan weighted=--structure tan --param weighted",
    "kdb1 weighted=--structure kdb --k 1 --param weighted",
    "gbn ofe=--structure gbn --param map",
    "nb elr=--structure nb --param extended",
    "tan elr=--structure tan --param extended",
    "gbn elr=--structure gbn --param extended",
    "tan acll=--structure tan --structure-score acll --param acll",
    "tan ll fgg=--structure tan --structure-score ll --param map --smoothing fgg",
    "climb bn=--structure hill-climb --perfect --param map --smoothing laplace",
    "climb lr=--structure hill-climb --perfect --param lr",
    "kmap=--structure kikuchi --param kmap",
    "kbma=--structure kikuchi --param kbma",
)
"""The models of Zaidi et al. (2017), Greiner et al. (2004), Carvalho et al. (2013), Feelders & Ivanovs (2006) and
Jakulin & Rish (2006)."""

PRESETS = {
    "fast": ("closed forms, and weights for naive Bayes and trees", FAST),
    "papers": ("the models of Zaidi, Greiner, Carvalho, Feelders & Ivanovs, Jakulin & Rish", PAPERS),
    "all": ("both of them", tuple(dict.fromkeys((*FAST, *PAPERS)))),
}
"""What each is for, and its learners as they would be typed."""
