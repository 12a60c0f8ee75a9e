"""The learning options of the command line: their flags, made from the catalogue, and the resulting recipe.

This module combines options on the command line with settings, and decides which values are files. `Recipe.of` fills in
the defaults and rejects options without effect.

The module also contains the learners of a comparison. A learner is a string such as `NAME=--structure kdb --k 2`, with
the learning options of `fit` as on the command line. A string that begins with a hyphen has no name, so that an equals
sign in it belongs to an option. The name is then made from the structure, the parameters and the other options given:
`kdb map k=2 hdp`.

The presets named after papers use the settings of the papers as far as bncli supports them: cuts by MDL, no pooled
levels, a penalty only if the paper has one, and the paper's smoothing, starting point, optimizer and stopping rule. No
penalty is cross-validated, so all arcs are kept. Each learner records the sections of the paper that describe it;
`bncli help compare` shows the table.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.core import ParameterSource

from bncli import catalogue
from bncli.catalogue import CHOICES, DISCRETIZERS, KEYS, LEARNING, PARAMETERS, SCORES, STRUCTURES
from bncli.catalogue.choices import Choice, flag_of, key_of
from bncli.catalogue.option_kinds import ColumnNames, Label, Switch
from bncli.cli.options import Decorator, Flag, KindType, Setting, flag, kind_metavar, settings_of_run
from bncli.errors import BncliError, UsageError
from bncli.files.paths import explain_missing

if TYPE_CHECKING:
    from bncli.engine.parameters.network_scores import Strengths
    from bncli.files.reading.source import Source
    from bncli.recipe import Recipe
    from bncli.steps.compare.trials import Learner
    from bncli.steps.learning_inputs import SuppliedFiles

CUTS_FILE = flag(
    "--cuts",
    group=catalogue.CUTTING,
    everyday=False,
    metavar="FILE",
    help="Use the cuts of this file instead of learning them.",
)


def flags_of(*groups: str, structure_file: bool = False) -> tuple[Decorator, ...]:
    """Return the flags of some groups of learning options, with --cuts in the group of cut points.

    structure_file: whether --structure also accepts a file.
    """
    flags = []
    for entry in LEARNING:
        if entry.group not in groups:
            continue
        settings: dict[str, Any]
        if isinstance(entry, Choice):
            takes_file = entry is STRUCTURES and structure_file
            settings = {
                "metavar": f"{entry.metavar}|FILE" if takes_file else entry.metavar,
                "default_text": "tan or interactions, by cross-validation" if takes_file else entry.default,
                "words": [(method.word, method.summary) for method in entry.methods],
                "help": entry.summary,
            }
        elif isinstance(entry.kind, Switch):
            settings = {"is_flag": True, "default": None, "help": entry.summary}
        elif isinstance(entry.kind, ColumnNames):
            settings = {"multiple": True, "metavar": entry.metavar, "help": entry.summary}
            settings["callback"] = lambda _ctx, _param, names: names or None
        else:
            settings = {
                "metavar": entry.metavar or kind_metavar(entry.kind),
                "type": KindType(entry.kind),
                "default_text": entry.default_text,
                "once": isinstance(entry.kind, Label),
                "help": entry.summary,
            }
        flags.append(flag(entry.flag, group=entry.group, everyday=entry.everyday, **settings))
    if catalogue.CUTTING in groups:
        n_cutting = sum(entry.group == catalogue.CUTTING for entry in LEARNING)
        flags.insert(n_cutting, CUTS_FILE)
    return tuple(flags)


CUTTING = flags_of(catalogue.CUTTING)
DECISIONS = flags_of(catalogue.DECISIONS)
STRUCTURE = (*flags_of(catalogue.STRUCTURE, catalogue.DATA), *CUTTING)
ALL = flags_of(
    *(catalogue.CUTTING, catalogue.STRUCTURE, catalogue.DATA, catalogue.PARAMETER, catalogue.DECISIONS),
    structure_file=True,
)
"""The learning options of `fit`, `evaluate` and the learners of a comparison."""
FROM_COUNTS = flag(
    "--from-counts",
    group=catalogue.DATA,
    everyday=False,
    metavar="FILE",
    setting=False,
    help="Learn from a counts file (of bncli count or merge) instead of DATA.",
)


class LearningOptions(NamedTuple):
    """The recipe, the contents of files that replace a part of learning, and notes about ignored settings."""

    recipe: Recipe
    supplied: SuppliedFiles
    notes: tuple[str, ...] = ()


def resolve_learning_options(
    typed: Mapping[str, Any], settings: Mapping[str, Setting] | None = None
) -> LearningOptions:
    """Return the recipe, the supplied files and the notes that result from the learning options.

    typed: values by key; options that the command does not have may be missing. settings: the settings to apply, or
    None for those of the running command. A setting that cannot be combined with the options on the command line is
    ignored with a note; one that is invalid in itself raises UsageError.
    """
    from bncli.recipe.defaults import parse_options

    every_setting = settings_of_run() if settings is None else settings
    # Methods come first, because what else is valid depends on them.
    choice_keys = [key_of(choice.flag) for choice in CHOICES]
    order = sorted(KEYS, key=lambda key: key not in choice_keys)
    settings = {key: every_setting[key] for key in order if key in every_setting}
    words = {key: typed[key] for key in KEYS if typed.get(key) is not None and key not in settings}
    for key, setting in settings.items():
        try:
            if key != "structure" or not is_structure_file(setting.value):
                parse_options({key: setting.value})
        except UsageError as error:
            raise UsageError(error.what, where=setting.where, hint=error.hint) from error

    structure = settings.get("structure")
    if structure is None:
        return _resolve(typed, words, settings)
    others = {key: setting for key, setting in settings.items() if key != "structure"}
    try:
        return _resolve(typed, words | {"structure": structure.value}, others)
    except UsageError as refusal:
        try:
            rest = _resolve(typed, words, others)
        except UsageError:
            raise refusal from None
        return rest._replace(notes=(f"{structure.where} is ignored: {refusal}", *rest.notes))


def resolve_with_scores(typed: Mapping[str, Any]) -> tuple[LearningOptions, Strengths | None]:
    """Return the learning options, and the parameters of the scores (None without --scores).

    Because --scores computes acll for every network, an option of acll that learning does not use applies only to the
    scores.
    """
    if not typed["scores"]:
        return resolve_learning_options(typed), None
    from bncli.engine.parameters.network_scores import Strengths
    from bncli.recipe import Recipe

    settings = settings_of_run()
    keys = [key for key in map(key_of, SCORES.options_of("acll")) if typed[key] is not None and key not in settings]
    recipe = resolve_learning_options({**typed, **dict.fromkeys(keys)}).recipe
    score = (recipe.structure_score or "").partition(":")[0]
    taken = {*SCORES.options_of(score), *PARAMETERS.options_of(recipe.param)}
    idle = {key: typed[key] for key in keys if flag_of(key) not in taken}
    resolved = resolve_learning_options({**typed, **dict.fromkeys(idle)})
    strengths = Strengths.of(resolved.supplied.update_recipe(resolved.recipe))
    scoring = Strengths.of(Recipe.of(structure="tan", structure_score="acll", seed=typed["seed"], **idle))
    if "pseudo_counts" in idle:
        strengths = strengths._replace(pseudo_counts=scoring.pseudo_counts)
    if "class_pair_prior" in idle:
        strengths = strengths._replace(prior=scoring.prior)
    return resolved, strengths


def _resolve(typed: Mapping[str, Any], words: dict[str, Any], settings: Mapping[str, Setting]) -> LearningOptions:
    """Return the learning options that result from `words` and from all settings that can be combined with them.

    words: the learning options on the command line, by key; a structure file is removed from it. typed: all options on
    the command line. Raises UsageError if the options are invalid, and the errors of reading supplied files.
    """
    from bncli.recipe import Recipe
    from bncli.recipe.defaults import SuppliedKinds
    from bncli.steps.learning_inputs import read_supplied

    structure = words.get("structure")
    file = words.pop("structure") if structure is not None and is_structure_file(structure) else None
    cuts, counts, paths = typed.get("cuts"), typed.get("from_counts"), typed.get("data")
    if isinstance(paths, tuple):
        from bncli.files.reading.column_roles import is_codes_table

        if is_codes_table(paths):
            if cuts is not None:
                raise UsageError(f"--cuts has no effect on {paths[0]}, whose rows are codes", hint="leave --cuts out")
            # a `.codes` table contains its cuts; they are not used with --structure auto
            cuts = None if structure == "auto" else str(paths[0])
    coded = cuts is not None and typed.get("cuts") is None
    if cuts is not None and counts is None:
        # Report errors that need no file before reading any file.
        keys = map(key_of, (STRUCTURES.flag, DISCRETIZERS.flag, *DISCRETIZERS.method_options))
        Recipe.of(files=SuppliedKinds(cuts, coded=coded), **{key: words[key] for key in keys if key in words})
    supplied = read_supplied(cuts if counts is None else None, file)
    choices = [choice for choice in CHOICES if choice is not PARAMETERS or "param" in typed]
    files = SuppliedKinds(cuts, file, supplied.region_method, typed.get("trace"), counts, coded)
    make_recipe = partial(Recipe.of, files=files, choices=choices, alternatives=True, **words)
    values = {key: setting.value for key, setting in settings.items()}
    kept, refusals = _select_settings(make_recipe, values)
    chosen = {key: values[key] for key in kept}
    recipe = make_recipe(**chosen)
    if recipe.prior_network is not None:
        supplied = supplied.with_prior(recipe.prior_network, recipe.prior_rows)
        if supplied.prior is None:  # a prior worth 0 rows counts as not typed
            recipe = make_recipe(**{**chosen, "prior_network": None, "prior_rows": None})
    notes = tuple(f"{settings[key].where} is ignored: {refusal}" for key, refusal in refusals.items())
    return LearningOptions(recipe, supplied, notes)


def _select_settings(
    make_recipe: Callable[..., Recipe], values: Mapping[str, Any]
) -> tuple[Iterable[str], Mapping[str, UsageError]]:
    """Return the keys of settings that are valid with the options on the command line, and the errors of the others.

    Options may need a setting, as --bins needs equal-width. The search therefore begins with the smallest set of at
    most two settings that makes the recipe valid, and then adds every other setting that keeps it valid. Raises
    UsageError if there is no such set.
    """
    if _refusal(make_recipe, values, values) is None:
        return values, {}
    refusal = _refusal(make_recipe, values, ())
    valid = (
        keys for size in range(3) for keys in combinations(values, size) if not _refusal(make_recipe, values, keys)
    )
    kept = next(valid, None)
    if kept is None:
        assert refusal is not None
        raise refusal
    while True:
        others = {key: _refusal(make_recipe, values, (*kept, key)) for key in values if key not in kept}
        fitting = next((key for key, reason in others.items() if reason is None), None)
        if fitting is None:
            return kept, {key: reason for key, reason in others.items() if reason is not None}
        kept = (*kept, fitting)


def _refusal(make_recipe: Callable[..., Recipe], values: Mapping[str, Any], keys: Iterable[str]) -> UsageError | None:
    """Return the error that a recipe with these settings raises, or None if it is valid."""
    try:
        make_recipe(**{key: values[key] for key in keys})
    except UsageError as error:
        return error
    return None


def is_structure_file(structure: str) -> bool:
    """Return whether the value of --structure is a file, not a method; raise UsageError if it is neither."""
    if STRUCTURES.method(structure):
        return False
    if os.path.exists(structure):
        return True
    if os.sep in structure or structure.endswith(".json"):
        reason, hint = explain_missing(structure)
        more = reason.removeprefix("no such file").removeprefix(": ")
        raise UsageError(f"there is no structure file {structure!r}{': ' if more else ''}{more}", hint=hint)
    from bncli.recipe.defaults import suggestion

    raise UsageError(f"unknown --structure {structure!r}", hint=suggestion(structure, STRUCTURES.words, " or a file"))


def counts_file(typed: Mapping[str, Any]) -> str | None:
    """Return the file of --from-counts, which replaces DATA, or None.

    Raises MissingParameter if neither is given, and UsageError if both are given or if DATA is a counts file. With
    --from-counts, also raises UsageError for --cluster and for flags about how a table is read.
    """
    context, counts, data = click.get_current_context(), typed["from_counts"], typed["data"]
    if counts is None:
        if not data:
            raise click.MissingParameter(ctx=context, param_type="argument", param_hint="'DATA...'")
        if data[0].endswith(".counts") and os.path.isfile(data[0]):
            from bncli.files.artifacts.file_kinds import HEAD_BYTES, recognise

            with open(data[0], "rb") as file:
                is_counts = recognise(file.read(HEAD_BYTES)).kind == "counts"
            if is_counts:
                hint = f"read counts with --from-counts {data[0]}"
                raise UsageError(f"{data[0]} is not a table", hint=hint)
        return None
    if data:
        what = f"--from-counts {counts} replaces DATA, but {data[0]!r} is given too"
        raise UsageError(what, hint="leave one of them out")
    if typed.get("cluster") is not None:
        raise UsageError(
            "--cluster has no effect with --from-counts", hint="leave --cluster out: there are no rows to distribute"
        )
    for parameter in context.command.params:
        name = parameter.name or ""
        is_about_data = isinstance(parameter, Flag) and parameter.group == catalogue.DATA
        if not is_about_data or name in (*KEYS, "from_counts", "unseen"):
            continue
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            what = f"{parameter.opts[0]} has no effect with --from-counts"
            raise UsageError(what, hint="give it to bncli count, which reads the table")
    return str(counts)


FAST = (
    "nb map=--structure nb --param map",
    "tan map=--structure tan --param map",
    "kdb2 hdp=--structure kdb --k 2 --param map --smoothing hdp",
    "skdb hdp=--structure skdb --param map --smoothing hdp",
    "tan acll=--structure tan --structure-score acll --param acll",
    "nb weighted=--structure nb --param weighted",
    "tan weighted=--structure tan --param weighted",
)
"""Learners with parameters in closed form, and naive Bayes and TAN with weighted parameters."""

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
"""The models of the papers, with the default penalty and optimizer of bncli."""


_NAMED = set(" ".join((*FAST, *_MODELS_OF_PAPERS)).replace("=", " ").split())
_OTHER_STRUCTURES = tuple(f"--structure {method.word}" for method in STRUCTURES.methods if method.word not in _NAMED)
_OTHER_PARAMS = tuple(
    f"--structure tan --param {method.word}"
    for method in PARAMETERS.methods
    if method.networks and method.word not in _NAMED
)
ALL_METHODS = (*FAST, *_MODELS_OF_PAPERS, *_OTHER_STRUCTURES, *_OTHER_PARAMS)
"""Learners that together use every structure method and every parameter method."""


class PublishedLearner(NamedTuple):
    """A learner described in a paper: its name, its options, and the sections that describe it."""

    name: str
    options: str
    sections: str


PUBLISHED_CUTS = "--discretize mdl --group-levels off"
"""The options that all learners from papers have: MDL cuts, and no pooled levels."""

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
"""The presets named after papers, each with the paper and its learners."""


_TYPED_PAPERS = {
    word: tuple(f"{learner.name}={learner.options} {PUBLISHED_CUTS}" for learner in learners)
    for word, (_, learners) in PAPERS.items()
}
PRESETS = {
    "fast": ("parameters in closed form, and weights for naive Bayes and trees", FAST),
    "all-methods": ("every structure and every parameter learner, with the defaults of bncli", ALL_METHODS),
    **{word: (f"{PAPERS[word][0]}, with the settings of the paper", texts) for word, texts in _TYPED_PAPERS.items()},
    "papers": ("the six papers above", tuple(chain.from_iterable(_TYPED_PAPERS.values()))),
}
"""The presets by name, each with a description for the help and its learners as values of --learner."""


def parse_learners(texts: Iterable[str], presets: Iterable[str], seed: int) -> list[Learner]:
    """Parse the learners in `texts`, followed by those learners of the presets whose names are not used in `texts`.

    Without texts and presets, return the learners of the preset `fast`.
    """
    typed = [parse_learner(text, seed) for text in texts]
    presets = list(presets) or ([] if typed else ["fast"])
    preset_texts = dict.fromkeys(text for preset in presets for text in PRESETS[preset][1])
    names = {learner.name for learner in typed}
    return typed + [learner for text in preset_texts if (learner := parse_learner(text, seed)).name not in names]


def parse_learner(text: str, seed: int) -> Learner:
    """Parse a value of --learner; if it is invalid, raise a BncliError that quotes it."""
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
    """Return a name made from the structure, the parameters, and all other options that were given.

    A method appears as its word, a file without its folder, a switch as its name, and another option as NAME=VALUE.
    """
    names = dict.fromkeys(
        [re.split(r"[\\/]", typed["structure"] or recipe.structure)[-1], recipe.param]
    )  # auto names both
    words = list(names)
    choice_keys = {key_of(choice.flag) for choice in catalogue.CHOICES} | {"cuts"}
    for key, value in typed.items():
        if key in ("structure", "param") or value is None:
            continue
        option = key.replace("_", "-")
        if value is True:
            words.append(option)
        else:
            words.append(re.split(r"[\\/]", str(value))[-1] if key in choice_keys else f"{option}={value}")
    return " ".join(words)


def typed_options(options: str = "") -> dict[str, Any]:
    """Parse a string of learning options; return every learning option by key, None if it was not given."""
    with _learning_command().make_context("--learner", shlex.split(options)) as context:
        return dict(context.params)


def help_rows() -> tuple[tuple[str, str], ...]:
    """Return the rows of the help for the options of a learner."""
    command = _learning_command()
    context = click.Context(command)
    flags = [flag for flag in command.params if isinstance(flag, Flag) and flag.group != catalogue.DECISIONS]
    return tuple(row for flag in flags for row in flag.help_rows(context, with_words=True))


@cache
def _learning_command() -> click.Command:
    """Return a command with the learning options, which is used only to parse them."""
    command: Any = click.Command("learner", add_help_option=False)
    for decorator in ALL:
        decorator(command)
    return command  # type: ignore[no-any-return]


def notes_about_coded_tables(learners: Iterable[Learner], sources: Iterable[Source]) -> list[str]:
    """Return a note per `.codes` table for each learner whose options for cuts have no effect on such a table."""
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
