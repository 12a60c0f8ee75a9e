"""`compare --preset NAME`: learners that are compared together often, as they would be typed after --learner.

The presets of the papers are the papers' own settings as far as they can be typed: cuts by MDL, no pooled levels, no
penalty unless the paper has one (so all arcs are kept), its smoothing, start, optimiser and stop. Each learner names
the sections that it comes from; `bncli help compare` shows the table.

`--learner "NAME=--structure kdb --k 2"`: the learning options of `fit` in one word, read as a command line is.

Conventions: a text that begins with a hyphen has no name, so an equals sign in it belongs to an option. The name is
then made of the structure, the parameters and whatever else was typed: `kdb map k=2 hdp`. Learners that are compared
together often have a name: `bncli compare DATA --preset papers`, in `bncli.cli.presets`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from bncli import catalogue
from bncli.catalogue import PARAMETERS, STRUCTURES
from bncli.catalogue.choices import flag_of, key_of
from bncli.cli import learning_options as learning
from bncli.cli.options import Callback, Flag
from bncli.errors import BncliError, UsageError

if TYPE_CHECKING:
    from bncli.files.reading.source import Source
    from bncli.recipe import Recipe
    from bncli.steps.compare.entries import Learner


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


def _unnamed_learners(learners: Iterable[str]) -> tuple[str, ...]:
    """Yield a learner with default options for each structure and each `param` that none of these names."""
    named = set(" ".join(learners).replace("=", " ").split())
    structures = [f"--structure {one.word}" for one in STRUCTURES.methods if one.word not in named]
    params = [
        one.word for one in PARAMETERS.methods if one.word not in named and f"--structure {one.word}" not in structures
    ]
    return (*structures, *(f"--structure tan --param {word}" for word in params))


ALL_METHODS = (*FAST, *_MODELS, *_unnamed_learners((*FAST, *_MODELS)))
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


def learners(texts: Iterable[str], presets: Iterable[str], seed: int) -> list[Learner]:
    """Return the learners typed, then those of the presets that are not among them.

    Without either the preset `fast`.
    """
    typed = [parse_learner(text, seed) for text in texts]
    chosen = list(presets) or ([] if typed else ["fast"])
    words = dict.fromkeys(text for preset in chosen for text in PRESETS[preset][1])
    taken = {one.name for one in typed}
    ready = [parse_learner(text, seed) for text in words]
    return typed + [one for one in ready if one.name not in taken]


def parse_learner(text: str, seed: int) -> Learner:
    """Return one learner; a UsageError says which one it is about."""
    from bncli.steps.compare.entries import Learner

    name, options = _split_name(text)
    try:
        typed = typed_options(options)
        _refuse_decisions(typed)
        chosen = learning.learning({**typed, "seed": seed}, settings={})
    except BncliError as error:
        raise type(error)(error.what, where=_place(text, error.where), hint=error.hint) from error
    except (click.ClickException, ValueError) as error:
        what = error.format_message() if isinstance(error, click.ClickException) else str(error)
        raise UsageError(
            what.rstrip("."), where=_place(text), hint="it takes the learning options of bncli fit"
        ) from error
    return Learner(name or _name(typed, chosen.recipe), chosen.recipe, options, chosen.supplied)


def _refuse_decisions(typed: Mapping[str, Any]) -> None:
    for key in catalogue.DECISION_KEYS:
        if typed[key] is not None:
            what = f"{flag_of(key)} has no effect in a comparison, whose figures are of probabilities"
            raise UsageError(what, hint="bncli evaluate measures decisions")


def _place(text: str, where: str = "") -> str:
    return f"{where}{', ' if where else ''}in --learner {text!r}"


def _split_name(text: str) -> tuple[str, str]:
    """Return the name (empty: none) and the options."""
    if text.lstrip().startswith("-"):
        return "", text.strip()
    name, equals, options = text.partition("=")
    if not equals:
        hint = "options begin with hyphens, as in 'NAME=--structure tan'; 'NAME=' alone takes every default"
        raise UsageError(f"{text!r} is no learner", where="in --learner", hint=hint)
    if not name.strip() or not name.isprintable():
        raise UsageError(f"{name!r} is no name", where=_place(text))
    return name.strip(), options.strip()


def typed_options(options: str = "") -> dict[str, Any]:
    """Return what the options of learning say, by key; as in `fit`, None where nothing was typed."""
    with _command().make_context("--learner", shlex.split(options)) as context:
        return dict(context.params)


def idle_notes(compared: Iterable[Learner], sources: Iterable[Source]) -> list[str]:
    """Return a note for each learner whose cut options cannot apply to a `.codes` file."""
    from bncli.files.reading.column_roles import is_codes_table

    coded = [source.paths[0] for source in sources if is_codes_table(source.paths)]
    keys = [key_of(entry.flag) for entry in catalogue.LEARNING if entry.group == catalogue.CUTTING]
    notes = []
    for one in compared if coded else ():
        typed = typed_options(one.options)
        flags = " and ".join(flag_of(key) for key in keys if typed[key] is not None)
        if flags:
            notes += [f"on {path}, whose rows are codes, {one.name} goes without its {flags}" for path in coded]
    return notes


def help_rows(*, everything: bool) -> tuple[tuple[str, str], ...]:
    """Return the options that a learner takes, those of every day or `everything`, as lines of the help."""
    command = _command()
    context = click.Context(command)
    flags = [flag for flag in command.params if isinstance(flag, Flag)]
    shown = [flag for flag in flags if flag.group != catalogue.DECISIONS and (everything or flag.everyday)]
    return tuple(row for flag in shown for row in flag.rows(context))


def _command() -> click.Command:
    def nothing(**typed: Any) -> None:
        """Never called: only the options are of use."""

    callback: Callback = nothing
    for decorator in reversed(learning.ALL):
        callback = decorator(callback)
    return click.command("learner", add_help_option=False)(callback)


def _name(typed: Mapping[str, Any], recipe: Recipe) -> str:
    """Methods left out are those that the recipe took; `auto` is the word of a structure and of its parameters."""
    methods = dict.fromkeys([_base(typed["structure"] or recipe.structure), recipe.param])
    return " ".join([*methods, *_further_options(typed)])


def _base(path: str) -> str:
    """Return a method's word as it is; of a file, its name."""
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def _further_options(typed: Mapping[str, Any]) -> Iterable[str]:
    """Yield what else was typed: the word of a method, NAME=VALUE for a number, the bare name of a switch."""
    methods = {key_of(choice.flag) for choice in catalogue.CHOICES} | {"cuts"}
    for key, value in typed.items():
        if key in ("structure", "param") or value is None:
            continue
        name = key.replace("_", "-")
        yield name if value is True else _base(str(value)) if key in methods else f"{name}={value}"
