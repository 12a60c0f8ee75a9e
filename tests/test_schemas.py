"""The schemas are true: what the commands print with --json fits them, and every key they name is really printed."""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from bncli.cli.config import schema_files, schema_text
from bncli.cli.main import run
from bncli.engine.prediction import effects
from bncli.files.artifacts.model import write_model
from tests.many_tables import boosted_model, random_schema
from tests.transcripts import ROOT

METRICS = ("accuracy", "error", "log-loss", "rmse", "brier", "auc", "ece", "cll", "balanced-accuracy", "mcc")
MAKING = """
fit iris.csv --param map -q -o tan.bnc
fit few.csv --structure auto --effort 1 --time-limit 1 -q -o auto.bnc
fit monks1.csv --structure kikuchi -q -o kikuchi.bnc
discretize dated.csv -q --cuts-out dated.json
fit iris.csv --structure interactions --penalty 1 -q -o interactions.bnc
fit holes.csv --missing-policy marginalize --param em --structure nb -q -o em.bnc
fit holes.csv --param map -q -o holes.bnc
fit monks1.csv --structure card --pairs 1 -q -o pair.bnc
fit monks1.csv --param extended --penalty 1 --restarts 2 -q -o restarts.bnc
fit monks1.csv --param acll --class-pair-prior 1,1000 -q -o acll.bnc
fit iris.csv --structure interactions --penalty 1 --bins 40 -q -o wide.bnc
discretize iris.csv -q --cuts-out cuts.json
fit monks1.csv --group-levels 2 --param map -q -o pooled.bnc
fit iris.csv --optimizer bfgs --param discriminative --penalty 1 --trace d.csv -q -o d.bnc
fit iris.csv --penalty 1 --trace w.csv -q -o w.bnc
fit iris.csv --preconditioner off --penalty 1 -q -o plain.bnc
fit few.csv --structure nb --param discriminative -q -o few.bnc
fit iris.csv --group petal_width --structure nb --param map -q -o grouped.bnc
fit few.csv -q -o default.bnc
fit monks1.csv --numeric a1 --numeric a2 --increasing a1 --decreasing a2 --penalty 1 -q -o ordered.bnc
fit iris.csv --increasing petal_length --towards setosa --penalty 1 -q -o towards.bnc
fit iris.csv --structure tan --knowledge known.toml --param map -q -o known.bnc
fit iris.csv --structure nb --param map --prior-network known.bnc --prior-rows 5 -q -o prior.bnc
fit iris.csv --structure nb --param map --class-weights balanced --max-attributes 2 -q -o weighted.bnc
fit tumours.csv --param map --threshold best:f1 --abstain-below 0.6 --sets 0.2 --sets-by all -q -o decides.bnc
fit tumours.csv --structure nb --param map --costs benign:malignant=1,malignant:benign=2 -q -o costs.bnc
fit iris.csv --param map --log-p-quantiles --intervals -q -o kept.bnc
export costs.bnc --to python -q -o costs.py
learn-structure iris.csv -q -o tan.json
learn-structure monks1.csv --structure kikuchi -q -o regions.json
learn-structure monks1.csv --structure kikuchi --bootstrap 2 --degrees-of-freedom joint -q -o checked.json
fit monks1.csv --structure checked.json -q -o checked.bnc
learn-structure iris.csv --structure interactions -q -o interactions.json
count iris.csv --cuts cuts.json -q -o pairs.counts
count iris.csv --cuts cuts.json --structure tan.json -q -o tan.counts
merge pairs.counts pairs.counts --decay 0.5 --allow-repeated -q -o faded.counts
fit iris.csv --param map --calibrate temperature -q -o temperature.bnc
calibrate tan.bnc iris.csv --method isotonic -q -o isotonic.bnc
calibrate tan.bnc iris.csv --method per-class -q -o per-class.bnc
"""

PRINTING = """
fit iris.csv --param map
fit iris.csv --param map --intervals
inspect kept.bnc --effects
fit iris.csv --param map --calibrate temperature
fit iris.csv --param map --calibrate isotonic
fit iris.csv --param map --calibrate per-class
fit --from-counts pairs.counts --param map
learn-structure --from-counts pairs.counts
count iris.csv --cuts cuts.json
count iris.csv --cuts cuts.json --structure tan.json
merge pairs.counts -o sum.counts
merge pairs.counts pairs.counts --decay 0.5 --allow-repeated -o sum.counts
fit iris.csv --structure nb
fit few.csv
fit iris.csv --structure nb --param map --class-weights balanced
fit few.csv --structure nb --param discriminative
fit iris.csv --structure hill-climb --param map --max-parents 1
fit few.csv --structure auto --effort 1 --time-limit 1
fit monks1.csv --structure kikuchi
fit iris.csv --structure nb --cuts cuts.json --dry-run
fit monks1.csv --param extended --penalty 1 --restarts 1 --max-iterations 5
fit monks1.csv --structure regions.json --param kmap
fit holes.csv --missing-policy marginalize --param extended --early-stop cv --structure nb --max-iterations 4
evaluate iris.csv --param map
evaluate iris.csv --param map --test iris.csv
evaluate iris.csv --model tan.bnc
evaluate holes.csv --model holes.bnc --by malic_acid,ash
evaluate monks1.csv --param map --structure nb --folds 2 --by a1
evaluate iris.csv --param map --reliability
evaluate tumours.csv --param map --structure nb --folds 2 --gains --net-benefit
evaluate iris.csv --param map --folds 2 --repeats 2
evaluate iris.csv --param map --structure nb --folds 2 --train-rows 20,all
evaluate iris.csv --param map --structure nb --test iris.csv --train-rows 20
evaluate iris.csv --param map --folds 2 --scores
inspect grouped.bnc
inspect default.bnc
inspect tan.bnc
inspect pair.bnc
inspect restarts.bnc
inspect weighted.bnc
inspect decides.bnc
inspect costs.bnc
fit tumours.csv --structure nb --param map --threshold 0.4 --abstain-below 0.6 --sets 0.2
fit tumours.csv --structure nb --param map --costs benign:malignant=1,malignant:benign=2
fit iris.csv --structure card --rows 9
evaluate tumours.csv --param map --structure nb --threshold 0.4 --abstain-below 0.6 --sets 0.2 --folds 2
evaluate tumours.csv --param map --structure nb --costs benign:malignant=1,malignant:benign=2 --folds 2
fit monks1.csv --structure card --alternatives 8
evaluate tumours.csv --model costs.bnc --abstain-below 0.6 --by size
inspect kept.bnc
explain kept.bnc
inspect prior.bnc
inspect temperature.bnc
inspect isotonic.bnc
inspect per-class.bnc
calibrate tan.bnc iris.csv -o c.bnc
calibrate tan.bnc iris.csv -o c.bnc --method isotonic
calibrate tan.bnc iris.csv -o c.bnc --method per-class
calibrate tan.bnc iris.csv --group petal_width -o c.bnc
inspect few.bnc
inspect ordered.bnc
inspect towards.bnc
inspect acll.bnc
inspect tan.bnc --tables
inspect tan.bnc --effects
inspect auto.bnc
inspect auto.bnc --tables
inspect auto.bnc --effects
inspect holes.bnc
inspect plain.bnc
inspect wide.bnc --tables
inspect wide.bnc --effects
inspect kikuchi.bnc
inspect kikuchi.bnc --tables
inspect dated.json
inspect interactions.bnc --tables
inspect interactions.bnc --effects
inspect em.bnc
inspect cuts.json
inspect pairs.counts
inspect tan.counts
inspect faded.counts
inspect pooled.bnc
inspect tan.json
inspect regions.json
inspect checked.json
inspect checked.bnc
inspect interactions.json
inspect many.bnc --effects
inspect known.bnc
explain tan.bnc
explain many.bnc
explain tan.bnc iris.csv --rows 1-2
describe iris.csv
describe tumours.csv --bins
describe holes.csv --schema-out d.json
describe copies.csv
describe alone.csv
learn-structure iris.csv
learn-structure iris.csv -o s.json
learn-structure iris.csv --scores
learn-structure iris.csv --structure hill-climb
learn-structure monks1.csv --structure kikuchi
learn-structure monks1.csv --structure kikuchi --bootstrap 2
learn-structure iris.csv --structure interactions
discretize iris.csv
discretize holes.csv
discretize monks1.csv
discretize monks1.csv --group-levels 2
discretize iris.csv --cuts-out c.json -o binned.csv
encode iris.csv -o iris.codes
discretize dated.csv
evaluate iris.csv --time petal_width --folds 3 --structure nb --param map
score tan.bnc iris.csv -o scores.csv
score tan.bnc iris.csv -o scores.csv --monitor monitor.json
score tan.bnc iris.csv -o scores.csv --monitor again.json
score kept.bnc iris.csv -o scores.csv --monitor kept.json
score kept.bnc iris.csv -o scores.csv --monitor last.json
monitor kept.json last.json
monitor monitor.json again.json --svg drift.svg
score tan.bnc iris.csv -o scores.csv --flip --set petal_width=1
score tan.bnc less.csv -o scores.csv --allow-missing-columns --explain 2
simulate tan.bnc --rows 20 -o drawn.csv
simulate em.bnc --rows 20 -o drawn.csv --missing-from-model
simulate --network nb --rows 20 --attributes 3 -o drawn.csv --missing 0.2 --network-out n.json --model-out n.bnc
export tan.bnc --to dot -o tan.dot
export tan.bnc --to bif -o tan.bif
export tan.bnc --to bif -o pooled.bif --min-rows 30
verify tan.bnc --property "the probability of setosa is never above 1"
verify tan.bnc --disclosure
verify tan.bnc
report tan.bnc -o tan.html
report tan.bnc --data iris.csv -o tan.html --svg drawn
dossier tan.bnc --data iris.csv -o dossier
verify tan.bnc --against tan.bif
import tan.bif -o imported.bnc
edit tan.bnc --effect petal_width --set >1.75=1 --label setosa --why x -o edited.bnc
edit tan.bnc --effect petal_width --flatten --why x --refit iris.csv -o edited.bnc
edit tan.bnc --list
inspect edited.bnc
verify edited.bnc
diff tan.bnc edited.bnc
verify costs.bnc --against costs.py
diff tan.bnc holes.bnc
diff tan.bnc em.bnc
diff tan.bnc few.bnc
diff restarts.bnc ordered.bnc
diff tan.bnc plain.bnc --data iris.csv
export pooled.bnc --to scorecard -o pooled.csv
compare iris.csv --learner a=--structure_nb_--param_map --learner b=--param_map --folds 2 --repeats 2 --jobs 1
compare iris.csv tumours.csv holes.csv --learner a=--structure_nb_--param_map --learner b=--param_map --folds 2 --jobs 1
convergence d.csv w.csv
convergence d.csv w.csv --lag w --svg curves.svg --histogram lags.svg
compare iris.csv few.csv --learner a=--penalty_1 --learner b=--param_map --folds 2 --jobs 1 --groups rows:99 COSTS
compare iris.csv --learner a=--param_map --folds 2 --jobs 1 METRICS
"""


@pytest.fixture(scope="session")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[str, Any]]]:
    """By command: what was typed, and the object that it printed; `_` in a learner stands for a blank."""
    folder = tmp_path_factory.mktemp("schemas")
    dated = [f"{d + 1}.03.2024;{d % 7 + 1},5;{f'€ {d},25' if d else 'k.A.'};{'ab'[d > 9]}" for d in range(25)]
    (folder / "dated.csv").write_text("\n".join(["d;x;y;class", *dated, ""]))
    for name in ("iris.csv", "tumours.csv", "monks1.csv", "monks1.schema.json"):
        shutil.copy(ROOT / "sample_data" / name, folder / name)
    shutil.copy(ROOT / "sample_data" / "wine_holes.csv", folder / "holes.csv")
    lines = (folder / "iris.csv").read_text().splitlines()
    (folder / "less.csv").write_text("\n".join([lines[0].split(",", 1)[1], *(x.split(",", 1)[1] for x in lines[1:5])]))
    (folder / "copies.csv").write_text("a,b,day,y\n" + "".join(f"{i},{i},2024-01-0{i},{i % 2}\n" for i in range(1, 10)))
    (folder / "few.csv").write_text(
        "x,class\n" + "".join(f"{'ab'[i * i % 5 > 2]},{'yn'[i % 7 > 3]}\n" for i in range(40))
    )
    (folder / "alone.csv").write_text("a\n1\n2\n")
    (folder / "known.toml").write_text('root = "petal_width"\n')
    write_model(str(folder / "many.bnc"), boosted_model(random_schema(6, 2, intervals=64), 400, most=3))
    found: dict[str, list[tuple[str, Any]]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(effects, "MOST_EFFECTS", 20)
        for step in ("export", "verify"):
            patch.setattr(f"bncli.steps.{step}.EXPORT_ROWS", 1_000)
        for line in MAKING.strip().splitlines():
            assert run(line.split()) == 0, line
        costs = " ".join(f"--metric {cost}" for cost in ("fit-seconds", "iterations", "passes"))
        metrics = " ".join(f"--metric {metric}" for metric in METRICS)
        for line in PRINTING.replace("METRICS", metrics).replace("COSTS", costs).strip().splitlines():
            words = [word.replace("_", " ") if "=--" in word else word for word in shlex.split(line)]
            quiet = [] if words[0] in ("inspect", "convergence") else ["-q"]
            found.setdefault(words[0], []).append((line, _object([*words, "--json", *quiet], folder / "printed.json")))
    return found


def _object(words: list[str], out: Path) -> Any:
    """What the command prints, through a file as its standard output."""
    with out.open("w") as opened, contextlib.redirect_stdout(opened):
        assert run(words) == 0, words
    return json.loads(out.read_text())


def objects(schema: dict[str, Any], root: dict[str, Any], value: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every object of a value that fits, with the schema that tells its keys, and where the schema stands."""
    if not isinstance(value, dict | list):
        return
    if "$ref" in schema:
        path = schema["$ref"]
        schema = root["$defs"][path.rpartition("/")[2]]
    unlike = ("null", "string", "number", "integer", "array" if isinstance(value, dict) else "object")
    choices = [(i, one) for i, one in enumerate(schema.get("anyOf", ())) if one.get("type") not in unlike]
    for choice, one in choices:
        # the only one is the one that fits
        if len(choices) == 1 or Draft202012Validator({**one, "$defs": root.get("$defs", {})}).is_valid(value):
            yield from objects(one, root, value, f"{path}|{choice}" if "properties" in one else path)
            return
    if isinstance(value, dict):
        if "properties" in schema:
            yield path, schema, value
        for key, member in value.items():
            inner = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
            if isinstance(inner, dict):
                yield from objects(inner, root, member, f"{path}/{key if key in schema.get('properties', {}) else '*'}")
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        for member in value:
            yield from objects(schema["items"], root, member, f"{path}[]")


def test_the_schemas_are_schemas() -> None:
    for word in schema_files():
        Draft202012Validator.check_schema(json.loads(schema_text(word)))


@pytest.mark.slow
def test_what_is_printed_fits(printed: dict[str, list[tuple[str, Any]]]) -> None:
    """In one test, and the keys in another, so that the commands mostly run in one process only."""
    assert sorted(printed) == sorted(schema_files())
    for word in schema_files():
        schema = Draft202012Validator(json.loads(schema_text(word)))
        for line, value in printed[word]:
            errors = [f"{error.json_path}: {error.message[:200]}" for error in schema.iter_errors(value)]
            assert errors == [], line
        assert not schema.is_valid({**printed[word][0][1], "another": 1}), word


RARE = {"missing", "merges", "levels", "bins", "sampled_rows", "p", "changed", "p_changed", "decision"}
"""Keys of missing values, of coarser binning of categorical attributes, which these small tables do not all show; of
structures by hand or of auto, where regions have bins for their size in place of cuts; of tables past memory; of
counter-examples to properties, with which `verify` does not end well."""


@pytest.mark.slow
def test_every_key_is_printed_and_the_optional_ones_not_always(printed: dict[str, list[tuple[str, Any]]]) -> None:
    lacking, always = {}, {}
    for word in schema_files():
        schema = json.loads(schema_text(word))
        seen: dict[str, tuple[dict[str, Any], set[str]]] = {}
        for _, value in printed[word]:
            for path, told, found in objects(schema, schema, value):
                assert told.get("additionalProperties") is False, (word, path)
                seen.setdefault(path, (told, set()))[1].update(found)
        unseen = {path: sorted(set(told["properties"]) - keys - RARE) for path, (told, keys) in seen.items()}
        lacking[word] = {path: keys for path, keys in unseen.items() if keys}
        optional = set(schema["properties"]) - set(schema["required"])
        always[word] = [key for key in optional if all(key in value for _, value in printed[word])]
    assert {word: paths for word, paths in lacking.items() if paths} == {}
    assert {word: keys for word, keys in always.items() if keys} == {}
