"""`compare --preset NAME`: learners that are compared together often, as they would be typed after --learner.

The presets of the papers are the papers' own settings as far as they can be typed: cuts by MDL, no pooled levels, no
penalty unless the paper has one (so all arcs are kept), its smoothing, start, optimiser and stop. Each learner names
the sections that it comes from; `bncli help compare` shows the table.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

from bncli.catalogue import PARAMETERS, STRUCTURES

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

_MODELS = (
    "kdb1 map=--structure kdb --k 1 --param map",
    "kdb1 weighted=--structure kdb --k 1 --param weighted",
    "gbn ofe=--structure gbn --param map",
    "nb elr=--structure nb --param extended",
    "tan elr=--structure tan --param extended",
    "gbn elr=--structure gbn --param extended",
    "tan ll fgg=--structure tan --structure-score ll --param map --smoothing fgg",
    "climb bn=--structure hill-climb --perfect --param map --smoothing laplace",
    "climb lr=--structure hill-climb --perfect --param lr",
    "kmap=--structure kikuchi --param kmap",
    "kbma=--structure kikuchi --param kbma",
)
"""Models of the papers, learnt with the penalty and the optimiser of this program."""


def _others(learners: Iterable[str]) -> tuple[str, ...]:
    """A learner for every structure, and for every parameters, that none of these names: its defaults do the rest."""
    named = set(" ".join(learners).replace("=", " ").split())
    structures = [f"--structure {one.word}" for one in STRUCTURES.methods if one.word not in named]
    params = [
        one.word for one in PARAMETERS.methods if one.word not in named and f"--structure {one.word}" not in structures
    ]
    return (*structures, *(f"--structure tan --param {word}" for word in params))


ALL_METHODS = (*FAST, *_MODELS, *_others((*FAST, *_MODELS)))
"""Every structure and every parameters at least once."""


class Published(NamedTuple):
    """A learner of a paper: name, options of its own, and the sections that it comes from."""

    name: str
    options: str
    sections: str


CUTS = "--discretize mdl --group-levels off"
"""What all learners of papers have: numbers cut by MDL, categories as they are."""

_CLIMB = "--penalty 0 --optimizer lbfgs --preconditioner off --tolerance 1e-32 --max-iterations 10000"
_ZAIDI = [
    learner
    for name, structure, section in (
        ("nb", "--structure nb", "7.1"),
        ("tan", "--structure tan", "7.2"),
        ("kdb1", "--structure kdb --k 1", "7.3"),
    )
    for learner in (
        Published(f"zaidi {name}", f"{structure} --param map --smoothing m-estimate:1", f"2.1, {section}, 7.5"),
        Published(
            f"zaidi {name} w",
            f"{structure} --param weighted --smoothing m-estimate:1 --init zero {_CLIMB}",
            f"5, {section}",
        ),
        Published(f"zaidi {name} d", f"{structure} --param discriminative --init zero {_CLIMB}", f"3, {section}"),
        Published(f"zaidi {name} e", f"{structure} --param extended --init zero {_CLIMB}", f"4, {section}"),
    )
]

_OFE = "--smoothing laplace:1 --missing-policy marginalize"
_GREINER = [
    learner
    for name, complete, incomplete in (("nb", "5.1.1", "5.1.3"), ("tan", "5.1.2", "5.1.3"), ("gbn", "5.2.1", "5.2.4"))
    for learner in (
        Published(f"greiner {name} ofe", f"--structure {name} --param map {_OFE}", complete),
        Published(
            f"greiner {name} elr",
            f"--structure {name} --param extended {_OFE} --init generative --penalty 0 --optimizer cg --early-stop cv",
            f"4, {complete}, {incomplete}",
        ),
        Published(f"greiner {name} em", f"--structure {name} --param em {_OFE}", incomplete),
        Published(f"greiner {name} apn", f"--structure {name} --param apn {_OFE} --optimizer cg", incomplete),
    )
]

_CARVALHO = [
    Published("carvalho tan ll", "--structure tan --structure-score ll --param map --smoothing fgg:5", "2.1, 5"),
    Published(
        "carvalho tan acll",
        "--structure tan --structure-score acll --param acll --pseudo-counts 5 --class-pair-prior 1,1000",
        "3.1.2, 3.2, 5",
    ),
    Published(
        "carvalho tan uniform",
        "--structure tan --structure-score acll-uniform --param acll-uniform --pseudo-counts 5",
        "3.1.1, 3.2, 5",
    ),
]

_PERFECT = "--structure hill-climb --structure-score bic --perfect"
_FEELDERS = [
    Published(
        f"feelders {name} {optimizer}",
        f"{_PERFECT} --param {param} --smoothing laplace:1 --init generative --penalty 0 --optimizer {optimizer} "
        "--max-iterations 200",
        f"{section}, 4, 5.3, 6",
    )
    for name, param, section in (("lr", "lr", "3.2"), ("roos", "lr-roos", "3.1"), ("bn", "extended", "5.2"))
    for optimizer in ("cg", "cgb", "bfgs")
]

_JAKULIN = [
    Published("jakulin kmap", "--structure kikuchi --param kmap --theta 1", "5, 6, 7"),
    Published("jakulin kbma", "--structure kikuchi --param kbma --theta 1", "5, 6, 7"),
]

PAPERS = {
    "zaidi": ("Zaidi et al. 2017", _ZAIDI),
    "greiner": ("Greiner, Su, Shen & Zhou 2005", _GREINER),
    "carvalho": ("Carvalho, Adão & Mateus 2013", _CARVALHO),
    "feelders": ("Feelders & Ivanovs 2006", _FEELDERS),
    "jakulin": ("Jakulin & Rish 2006", _JAKULIN),
}
"""By word: the paper, and its learners."""


def _typed(learners: Iterable[Published]) -> tuple[str, ...]:
    return tuple(f"{one.name}={one.options} {CUTS}" for one in learners)


PRESETS = {
    "fast": ("closed forms, and weights for naive Bayes and trees", FAST),
    "all-methods": ("every structure and every parameters, with the defaults of this program", ALL_METHODS),
    **{word: (f"{paper}, with the settings of the paper", _typed(ones)) for word, (paper, ones) in PAPERS.items()},
    "papers": ("these five papers", tuple(chain.from_iterable(_typed(ones) for _, ones in PAPERS.values()))),
}
"""What each is for, and its learners as they would be typed."""
