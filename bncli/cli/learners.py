"""Learners of a comparison: how they are typed after --learner, and the presets of --preset.

A learner is a text such as `NAME=--structure kdb --k 2`, with the learning options of `fit` as on a command line. A
text that begins with a hyphen has no name, so an equals sign in it belongs to an option. Its name is then made of the
structure, the parameters and the other options that were typed: `kdb map k=2 hdp`.

The presets of papers are the settings of the papers as far as bncli has them: cuts by MDL, no pooled levels, no penalty
unless the paper has one (so all arcs are kept), its smoothing, start, optimizer and stopping rule. Each learner names
the sections that it comes from; `bncli help compare` shows the table.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from bncli import catalogue
from bncli.catalogue import PARAMETERS, STRUCTURES
from bncli.catalogue.choices import flag_of, key_of
from bncli.cli.learning_options import ALL, resolve_learning_options
from bncli.cli.options import Flag
from bncli.errors import BncliError, UsageError

if TYPE_CHECKING:
    from bncli.files.reading.source import Source
    from bncli.recipe import Recipe
    from bncli.steps.compare.trials import Learner

FAST = (
    "nb map=--structure nb --param map",
    "tan map=--structure tan --param map",
    "kdb2 hdp=--structure kdb --k 2 --param map --smoothing hdp",
    "skdb hdp=--structure skdb --param map --smoothing hdp",
    "tan acll=--structure tan --structure-score acll --param acll",
    "nb weighted=--structure nb --param weighted",
    "tan weighted=--structure tan --param weighted",
)
"""Learners with parameters in closed form, and naive Bayes and TAN with weights."""

_MODELS_OF_PAPERS = (
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
"""Models of the papers, learned with the default penalty and optimizer of bncli."""


_NAMED = set(" ".join((*FAST, *_MODELS_OF_PAPERS)).replace("=", " ").split())
_OTHER_STRUCTURES = tuple(f"--structure {method.word}" for method in STRUCTURES.methods if method.word not in _NAMED)
_OTHER_PARAMS = tuple(
    f"--structure tan --param {method.word}"
    for method in PARAMETERS.methods
    if method.networks and method.word not in _NAMED
)
ALL_METHODS = (*FAST, *_MODELS_OF_PAPERS, *_OTHER_STRUCTURES, *_OTHER_PARAMS)
"""Learners that together use every structure and all parameters."""


class PublishedLearner(NamedTuple):
    """A learner described in a paper: its name, its options, and the sections that describe it."""

    name: str
    options: str
    sections: str


CUTS = "--discretize mdl --group-levels off"
"""Options of all learners of papers: MDL cuts, and no pooled levels."""

_CLIMB = "--penalty 0 --optimizer lbfgs --preconditioner off --tolerance 1e-32 --max-iterations 10000"
_ZAIDI = [
    learner
    for name, structure, section in (
        ("nb", "--structure nb", "7.1"),
        ("tan", "--structure tan", "7.2"),
        ("kdb1", "--structure kdb --k 1", "7.3"),
    )
    for learner in (
        PublishedLearner(f"zaidi {name}", f"{structure} --param map --smoothing m-estimate:1", f"2.1, {section}, 7.5"),
        PublishedLearner(
            f"zaidi {name} w",
            f"{structure} --param weighted --smoothing m-estimate:1 --init zero {_CLIMB}",
            f"5, {section}",
        ),
        PublishedLearner(
            f"zaidi {name} d", f"{structure} --param discriminative --init zero {_CLIMB}", f"3, {section}"
        ),
        PublishedLearner(f"zaidi {name} e", f"{structure} --param extended --init zero {_CLIMB}", f"4, {section}"),
    )
]

_OFE = "--smoothing m-estimate:1 --missing-policy marginalize"
_ITERATIONS = "--tolerance 1e-6 --max-iterations 60"
_GREINER = [
    learner
    for name, complete, incomplete in (("nb", "5.1.1", "5.1.3"), ("tan", "5.1.2", "5.1.3"), ("gbn", "5.2.1", "5.2.4"))
    for learner in (
        PublishedLearner(f"greiner {name} ofe", f"--structure {name} --param map {_OFE}", complete),
        PublishedLearner(
            f"greiner {name} elr",
            f"--structure {name} --param extended {_OFE} --init generative --penalty 0 --optimizer cg --early-stop cv "
            f"{_ITERATIONS}",
            f"4, {complete}, {incomplete}",
        ),
        PublishedLearner(f"greiner {name} em", f"--structure {name} --param em {_OFE} {_ITERATIONS}", incomplete),
        PublishedLearner(
            f"greiner {name} apn", f"--structure {name} --param apn {_OFE} --optimizer cg {_ITERATIONS}", incomplete
        ),
    )
]

_CARVALHO = [
    PublishedLearner("carvalho tan ll", "--structure tan --structure-score ll --param map --smoothing fgg:5", "2.1, 5"),
    PublishedLearner(
        "carvalho tan acll",
        "--structure tan --structure-score acll --param acll --pseudo-counts 5 --class-pair-prior 1,1000",
        "3.1.2, 3.2, 5",
    ),
    PublishedLearner(
        "carvalho tan uniform",
        "--structure tan --structure-score acll-uniform --param acll-uniform --pseudo-counts 5",
        "3.1.1, 3.2, 5",
    ),
]

_PERFECT = "--structure hill-climb --structure-score bic --perfect"
_FEELDERS = [
    PublishedLearner(
        f"feelders {name} {optimizer}",
        f"{_PERFECT} --param {param} --smoothing laplace:1 --init generative --penalty 0 --optimizer {optimizer} "
        "--tolerance 1e-8 --max-iterations 200",
        f"{section}, 4, 5.3, 6",
    )
    for name, param, section in (("lr", "lr", "3.2"), ("roos", "lr-roos", "3.1"), ("bn", "extended", "5.2"))
    for optimizer in ("cg", "cgb", "bfgs")
]

_JAKULIN = [
    PublishedLearner("jakulin nb", "--structure nb --param map --smoothing bdeu:1", "7"),
    PublishedLearner("jakulin lr", "--structure nb --param lr --penalty 0.01", "7"),
    PublishedLearner("jakulin tan", "--structure tan --param map --smoothing bdeu:1", "7"),
    PublishedLearner("jakulin kmap", "--structure kikuchi --param kmap --theta 1", "5, 6, 7"),
    PublishedLearner("jakulin kbma", "--structure kikuchi --param kbma --theta 1", "5, 6, 7"),
]

_FRIEDMAN = [
    PublishedLearner("friedman nb", "--structure nb --param map --smoothing mle", "3, 5"),
    PublishedLearner("friedman tan", "--structure tan --param map --smoothing mle", "4.1, 5"),
    PublishedLearner("friedman tan s", "--structure tan --param map --smoothing fgg:5", "4.1, 5"),
]

PAPERS = {
    "zaidi": ("Zaidi et al. 2017", _ZAIDI),
    "greiner": ("Greiner, Su, Shen & Zhou 2005", _GREINER),
    "carvalho": ("Carvalho, Adão & Mateus 2013", _CARVALHO),
    "feelders": ("Feelders & Ivanovs 2006", _FEELDERS),
    "jakulin": ("Jakulin & Rish 2006", _JAKULIN),
    "friedman": ("Friedman, Geiger & Goldszmidt 1997", _FRIEDMAN),
}
"""The presets of papers, by word: the paper and its learners."""


_TYPED_PAPERS = {
    word: tuple(f"{learner.name}={learner.options} {CUTS}" for learner in learners)
    for word, (_, learners) in PAPERS.items()
}
PRESETS = {
    "fast": ("parameters in closed form, and weights for naive Bayes and trees", FAST),
    "all-methods": ("every structure and every parameter learner, with the defaults of bncli", ALL_METHODS),
    **{word: (f"{PAPERS[word][0]}, with the settings of the paper", texts) for word, texts in _TYPED_PAPERS.items()},
    "papers": ("the six papers above", tuple(chain.from_iterable(_TYPED_PAPERS.values()))),
}
"""The presets by word: a description for the help, and the learners as they would be typed."""


def parse_learners(texts: Iterable[str], presets: Iterable[str], seed: int) -> list[Learner]:
    """Return the learners that were typed, then the learners of the presets whose names are still free.

    Without either, return the learners of the preset `fast`.
    """
    typed = [parse_learner(text, seed) for text in texts]
    presets = list(presets) or ([] if typed else ["fast"])
    preset_texts = dict.fromkeys(text for preset in presets for text in PRESETS[preset][1])
    names = {learner.name for learner in typed}
    return typed + [learner for text in preset_texts if (learner := parse_learner(text, seed)).name not in names]


def parse_learner(text: str, seed: int) -> Learner:
    """Return the learner that a value of --learner describes; raise a UsageError that quotes an invalid value."""
    from bncli.steps.compare.trials import Learner

    place = f"in --learner {text!r}"
    if text.lstrip().startswith("-"):
        name, options = "", text
    else:
        name, equals, options = text.partition("=")
        if not equals:
            hint = "options begin with hyphens, as in 'NAME=--structure tan'; 'NAME=' alone uses every default"
            raise UsageError(f"{text!r} is not a learner", where="in --learner", hint=hint)
        if not name.strip() or not name.isprintable():
            raise UsageError(f"{name!r} is not a valid name for a learner", where=place)
    name, options = name.strip(), options.strip()
    try:
        typed = typed_options(options)
        for key in catalogue.DECISION_KEYS:
            if typed[key] is not None:
                what = f"{flag_of(key)} has no effect in a comparison, because only probabilities are compared"
                raise UsageError(what, hint="to measure decisions, use bncli evaluate")
        resolved = resolve_learning_options({**typed, "seed": seed}, settings={})
    except BncliError as error:
        where = ", ".join(filter(None, (error.where, place)))
        raise type(error)(error.what, where=where, hint=error.hint) from error
    except (click.ClickException, ValueError) as error:
        what = error.format_message() if isinstance(error, click.ClickException) else str(error)
        raise UsageError(what.rstrip("."), where=place, hint="give learning options of bncli fit") from error
    return Learner(name or _default_name(typed, resolved.recipe), resolved.recipe, options, resolved.supplied)


def _default_name(typed: Mapping[str, Any], recipe: Recipe) -> str:
    """Return a name made of the structure, the parameters, and everything else that was typed.

    Methods are named by their words, files without their folders, numbers as NAME=VALUE, and switches by their names.
    """
    names = dict.fromkeys([_without_folder(typed["structure"] or recipe.structure), recipe.param])  # auto names both
    words = list(names)
    choice_keys = {key_of(choice.flag) for choice in catalogue.CHOICES} | {"cuts"}
    for key, value in typed.items():
        if key in ("structure", "param") or value is None:
            continue
        option = key.replace("_", "-")
        if value is True:
            words.append(option)
        else:
            words.append(_without_folder(str(value)) if key in choice_keys else f"{option}={value}")
    return " ".join(words)


def _without_folder(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def typed_options(options: str = "") -> dict[str, Any]:
    """Return the values of learning options in one text, by key; None for those that were not typed, as in `fit`."""
    with _learning_command().make_context("--learner", shlex.split(options)) as context:
        return dict(context.params)


def help_rows(*, show_all: bool) -> tuple[tuple[str, str], ...]:
    """Return the rows of the help for the options of a learner: all of them, or the everyday ones."""
    command = _learning_command()
    context = click.Context(command)
    flags = [flag for flag in command.params if isinstance(flag, Flag) and flag.group != catalogue.DECISIONS]
    return tuple(
        row for flag in flags if show_all or flag.everyday for row in flag.help_rows(context, with_words=show_all)
    )


@cache
def _learning_command() -> click.Command:
    """Return a command that has the learning options, and that only parses them."""
    command: Any = click.Command("learner", add_help_option=False)
    for decorator in ALL:
        decorator(command)
    return command  # type: ignore[no-any-return]


def notes_about_coded_tables(learners: Iterable[Learner], sources: Iterable[Source]) -> list[str]:
    """Return a note per `.codes` table and learner with options for cuts, which have no effect on such a table."""
    from bncli.files.reading.column_roles import is_codes_table

    coded = [source.paths[0] for source in sources if is_codes_table(source.paths)]
    keys = [key_of(entry.flag) for entry in catalogue.LEARNING if entry.group == catalogue.CUTTING]
    notes = []
    for learner in learners if coded else ():
        typed = typed_options(learner.options)
        flags = " and ".join(flag_of(key) for key in keys if typed[key] is not None)
        if flags:
            why = "because its rows are already discretized"
            notes += [f"learner {learner.name!r} is run on {path} without {flags}, {why}" for path in coded]
    return notes
