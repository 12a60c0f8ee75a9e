"""Sentences of fact about a model for its dossier, by the keys that checklist items use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bncli.engine.data.schema import NumericAttribute
from bncli.engine.evaluation.groups import Group
from bncli.engine.model import Tables
from bncli.files.artifacts.provenance import recipe_json
from bncli.steps.dossier.findings import Findings
from bncli.steps.report.page_text import count, figure, listed, percent
from bncli.steps.report.performance_section import comparison_sentence, never_predicted

_FEW_EVENTS = 100
"""With fewer rows of the rarest label, figures are too uncertain for a verdict (Collins, Ogundimu & Altman 2016)."""


_NAMES = {"accuracy": "accuracy", "log_loss": "log-loss", "auc": "AUC", "brier": "Brier score"}


def facts_of(found: Findings) -> Mapping[str, str]:
    """Return the facts by key, without those that do not apply."""
    facts = _facts_of_model(found) | _facts_of_rows(found) | _facts_of_figures(found)
    return {word: text for word, text in facts.items() if text}


def _facts_of_model(found: Findings) -> dict[str, str]:
    model, schema = found.model, found.model.schema
    recipe = model.recipe
    used = [schema.attributes[i] for i in sorted(model.attributes)]
    numeric = [attribute.name for attribute in used if isinstance(attribute, NumericAttribute)]
    kinds = f"{len(numeric):,} numeric, {len(used) - len(numeric):,} categorical"
    options = ", ".join(f"{key}={value}" for key, value in recipe_json(recipe).items() if value is not None)
    labels = " or ".join(schema.labels) if len(schema.labels) <= 6 else count(len(schema.labels), "label")
    weight = sum(schema.label_frequencies)
    frequencies = zip(schema.labels, schema.label_frequencies, strict=bool(schema.label_frequencies))
    shares = [f"{label} {n:,.10g} ({percent(n / weight)})" for label, n in frequencies] if weight else []
    rows_of_labels = f", of which {', '.join(shares)}" if shares else ""
    penalty = "" if model.penalty is None else f" Penalty {model.penalty:.4g}"
    penalty += ", chosen by cross-validation." if penalty and model.penalty_cv is not None else "." * bool(penalty)
    held_out = model.held_out_log_loss
    inner = (
        "" if held_out is None else (f" Held-out log-loss when the model was fitted: {figure(held_out)} nats per row.")
    )
    edits = [f"{' & '.join(edit.effect)} ({edit.action}; {edit.why})" for edit in model.edits]
    changed = f"Effects changed by hand: {listed(edits)}." if edits else "No effect was changed by hand."
    calibrated = ""
    if model.calibration is not None:
        calibrated = f" Probabilities are calibrated ({model.calibration.map.method})."
    rule = model.rule
    rules = []
    if rule is not None and rule.threshold is not None:
        chosen = f", chosen by {rule.threshold.chosen}" if rule.threshold.chosen else ""
        rules.append(f"{schema.labels[1]} if its probability is at least {rule.threshold.value:.4g}{chosen}")
    if rule is not None and rule.costs is not None:
        rules.append("the label with the lowest expected cost")
    if rule is not None and rule.abstain_below is not None:
        rules.append(f"no decision if all probabilities are below {rule.abstain_below:g}")
    weighted = "Classes have equal weight: probabilities assume the class frequencies in training."
    if model.class_weights is not None:
        factors = zip(schema.labels, model.class_weights, strict=True)
        weighted = f"Classes were weighted ({', '.join(f'{label} {w:.4g}' for label, w in factors)}): probabilities "
        weighted += "assume the weighted frequencies."
    unseen = "are an error" if schema.unseen == "error" else "are treated as unknown and get an average score"
    missing = "is treated as one more value" if schema.missing_policy == "level" else "is marginalized"
    effects = found.specification["effects"]
    shares_of = [f"{' & '.join(effect['attributes'])} {percent(effect['share'])}" for effect in effects]
    formula = "ln P(label | row) is the sum of one entry per table, normalized over the labels"
    if not isinstance(model.predictor, Tables):
        formula = f"P(label | row) is a weighted mean over several models; in each, {formula}"
    program = "" if found.specification["python"] is None else "; specification.python is a program that computes it"
    command = found.specification["command"]
    by_command = f"Command: {command}." if command else "Parts of the model were supplied as files."
    self_test = found.verified.self_test
    properties = found.verified.properties or ()
    verdicts = {True: "proven", False: "refuted", None: "open: the time limit was reached"}
    proven = [f"{one.text}: {verdicts[one.holds]}{f' ({one.shown})' if one.shown else ''}" for one in properties]
    disclosed = found.verified.disclosure
    below = "" if disclosed is None else count(len(disclosed.values), "value")
    return {
        "model": f"Predicts {schema.class_name} ({labels}) from {count(len(used), 'attribute')}: "
        f"{model.structure_learned}, parameters {recipe.param}.",
        "outcome": f"Column {schema.class_name} with the labels {labels}.",
        "attributes": f"{count(len(used), 'attribute')} ({kinds}): {', '.join(a.name for a in used)}.",
        "selection": f"{len(used):,} of {count(len(schema.attributes), 'attribute')} are used"
        + ("." if len(used) == len(schema.attributes) else "; the others are not informative or were left out."),
        "preparation": f"Numbers are cut into intervals ({recipe.discretize}) on training rows alone; "
        "the cuts are in the model file.",
        "missing": f"A missing value {missing}. {_missing_text(found)}",
        "unknown_values": f"Values that did not occur in training {unseen}. A missing value {missing}. "
        f"{_missing_text(found)}",
        "method": f"{model.structure_learned}; parameters {recipe.param}. Options: {options}.",
        "tuning": (penalty + inner).strip(),
        "changes": f"{changed}{calibrated} Fitted by bncli {model.version}.",
        "imbalance": weighted,
        "output": f"The probability of each label.{calibrated} Decision: "
        f"{'; '.join(rules) if rules else 'the most probable label'}.",
        "prediction": f"By the model file; {formula}.{calibrated}",
        "development": f"{count(model.n_rows, 'training row')}{rows_of_labels}.",
        "specification": f"All tables are in dossier.json (specification{program}), and on this page: {formula}."
        f"{calibrated} {by_command}",
        "effects": f"Shares of the variance of the score: {listed(shares_of) or 'no attribute is used'}.",
        "self_test": ""
        if self_test is None
        else f"{self_test.rows:,} stored rows were scored again; the largest difference is {self_test.max_dp:.1e}.",
        "certificates": "; ".join(proven) + ("." if proven else ""),
        "disclosure": ""
        if disclosed is None
        else f"{below} in the model file ha{'s' if len(disclosed.values) == 1 else 've'} fewer than "
        f"{disclosed.min_rows} training rows; {count(disclosed.held_out, 'single row')} with stored held-out "
        "probabilities.",
        "software": f"Fitted by bncli {model.version}. Scoring needs Python with NumPy and bncli, or an export that "
        "works without bncli.",
    }


def _facts_of_rows(found: Findings) -> dict[str, str]:
    report, monitor = found.scored.report, found.monitored.overall
    supports = [f"{label} {own.support:,.10g}" for label, own in zip(report.labels, report.per_label, strict=True)]
    without = f"; {count(found.unlabelled, 'row')} without a class not evaluated" if found.unlabelled else ""
    columns = [column for column in found.data["columns"] if column["name"] != found.data["class"]]
    lacking = [f"{column['name']} {column['missing']:,}" for column in columns if column["missing"]]
    drifted = monitor.drifted
    psi = [(drift.psi, name) for name in found.monitored.names for drift in found.monitored.drifts(name) if drift.psi]
    highest = f"; highest stability index {max(psi)[0]:.3f} ({max(psi)[1]})" if psi else ""
    if report.on_training_rows:
        partition = "The test rows are the training rows, so the figures are too optimistic."
    else:
        partition = "Judging by their number and frequencies, the test rows are not the training rows."
    expected = []
    for name, own in monitor.expected.items():
        if own.value is not None:
            interval = "" if own.interval is None else f" ({' to '.join(map(figure, own.interval))})"
            expected.append(f"{_NAMES[name]} {figure(own.value)}{interval}")
    warnings = []
    if report.on_training_rows:
        warnings.append("the figures are computed on the training rows")
    fewest = min((own.support for own in report.per_label), default=0)
    if fewest < _FEW_EVENTS:
        warnings.append(f"the rarest label has {fewest:,.10g} test rows, fewer than {_FEW_EVENTS}")
    if drifted:
        warnings.append(f"{listed(drifted)} drifted since training")
    refuted = [one.text for one in found.verified.properties or () if one.holds is False]
    warnings += [f"refuted: {text}" for text in refuted]
    warnings += [finding["message"] for finding in found.data["findings"]]
    times = [period.name for period in found.periods]
    return {
        "rows": f"{count(report.rows, 'test row')}{without}.",
        "sample_size": f"{count(found.model.n_rows, 'training row')}; tested: {', '.join(supports)}.",
        "characteristics": f"{count(len(columns), 'column')} in the test table, described in dossier.json (data); "
        + (f"missing values: {listed(lacking)}." if lacking else "no value is missing."),
        "files": "; ".join(f"{kind} {path} (SHA-256 {digest[:16]}...)" for kind, path, digest in found.files) + ".",
        "partition": partition,
        "drift": (f"Drifted: {listed(drifted)}" if drifted else "No attribute has drifted") + f"{highest}.",
        "dates": f"Test rows from {times[0]} to {times[-1]}." if times else "",
        "expected": f"On {count(monitor.tally.rows, 'row')}, the probabilities imply {', '.join(expected)}.",
        "warnings": "; ".join(warnings) + ("." if warnings else ""),
    }


def _missing_text(found: Findings) -> str:
    tally = found.monitored.overall.tally
    n = max(tally.rows, 1)
    lacking = [f"{own.name} {percent(own.missing / n)}" for own in tally.attributes if own.missing]
    unseen = [f"{own.name} {percent(own.unseen / n)}" for own in tally.attributes if own.unseen]
    text = (
        f"Missing values in the test rows: {listed(lacking)}." if lacking else "No value is missing in the test rows."
    )
    return text + (f" Never seen in training: {listed(unseen)}." if unseen else "")


def _facts_of_figures(found: Findings) -> dict[str, str]:
    report = found.scored.report
    two_class = report.two_class
    calibration, benefit = "", ""
    if two_class is not None:
        parts = []
        for name in ("slope", "intercept", "in_the_large"):
            own = getattr(two_class, f"calibration_{name}")
            ends = two_class.intervals.get(f"calibration_{name}")
            interval = "" if ends is None else f" ({' to '.join(map(figure, ends))})"
            parts.append(f"{name.replace('_', ' ')} {figure(own)}{interval}")
        calibration = f"Calibration: {', '.join(parts)}; calibration error {figure(report.metrics['ece'])}."
        better = [line.threshold for line in two_class.net_benefit if line.model > max(line.all, line.none)]
        benefit = "The net benefit is not above that of always or never predicting the event at any threshold."
        if better:
            benefit = (
                f"The net benefit is above that of always or never predicting the event at {len(better)} of 99 "
                f"thresholds, "
            )
            benefit += f"from {min(better):.2f} to {max(better):.2f}."
    else:
        calibration = f"Calibration error {figure(report.metrics['ece'])}."
    never = never_predicted(report)
    groups = () if report.groups is None else report.groups.groups
    fairness = []
    for entry in () if report.groups is None else report.groups.fairness:
        gaps = [f"{name.replace('_', ' ')} {gap.difference:.3f}" for name, gap in entry.gaps.items() if gap is not None]
        if gaps:
            fairness.append(f"largest differences by {entry.by} for {entry.label}: {', '.join(gaps)}")
    periods = [period.group for period in found.periods if period.group is not None]
    columns = list(dict.fromkeys(group.by for group in groups))
    of_groups = [
        _lowest_and_highest_text(
            f"{count(sum(g.by == by for g in groups), 'group')} by {by}", [group for group in groups if group.by == by]
        )
        for by in columns
    ]
    of_periods = (
        _lowest_and_highest_text(f"{count(len(periods), 'period')} by {periods[0].by}", periods) if periods else ""
    )
    most = sorted(found.sensitivities.items(), key=lambda pair: -pair[1].log_loss_increase)
    sensitivity = [f"{name} {own.log_loss_increase:.4f}" for name, own in most]
    where = " and ".join([*(f"groups by {by}" for by in columns), *(["periods"] if periods else [])])
    parts = []
    for name in ("auc", "log_loss", "accuracy", "brier"):
        ends = report.intervals.metrics.get(name)
        interval = "" if ends is None else f" ({' to '.join(map(figure, ends))})"
        parts.append(f"{_NAMES[name]} {figure(report.metrics[name])}{interval}")
    return {
        "performance": f"On {count(report.rows, 'row')}: {', '.join(parts)}.",
        "calibration": calibration,
        "net_benefit": f"{never} {benefit}".strip(),
        "baseline": ("" if found.challengers else "No other model was compared (--beside). ")
        + f"Class frequencies alone: log-loss {figure(report.baseline.log_loss)}, accuracy "
        f"{figure(report.baseline.accuracy)}.",
        "groups": " ".join(of_groups),
        "periods": f"{of_periods} {unexpected_figures(found)}".strip(),
        "heterogeneity": f"All figures with intervals for {where}." if where else "",
        "fairness": f"{'; '.join(fairness).capitalize()}. {never}".strip() if fairness else "",
        "sensitivity": f"Increase in log-loss when an attribute's values are permuted: {listed(sensitivity)} "
        f"({count(found.sensitivity_rows, 'row')})."
        if sensitivity
        else "",
        "challenger": " ".join(comparison_sentence(report, other) for other in found.challengers),
        "measures": "Accuracy, log-loss, Brier score, AUC, calibration error, balanced accuracy, Matthews coefficient"
        + (", calibration slope and intercept, net benefit" if two_class is not None else "")
        + f"; {report.intervals.method}.",
    }


def unexpected_figures(found: Findings) -> str:
    """Return a sentence on the periods whose figures are outside the intervals that the probabilities imply.

    It is "" if no figure can be compared. Periods with rows without a class are left out.
    """
    outside, n_compared = [], 0
    for period in found.periods:
        if period.group is None or period.group.rows != period.rows:
            continue
        for name, own in period.expected.items():
            measured = period.group.metrics[name]
            if own.interval is None or measured is None:
                continue
            n_compared += 1
            low, high = own.interval
            if not low <= measured <= high:
                expected = f"expected {figure(low)} to {figure(high)}"
                outside.append(f"{_NAMES[name]} of {period.name} ({figure(measured)}, {expected})")
    if not n_compared:
        return ""
    by_chance = f"about 1 in 20 is outside by chance; {count(n_compared, 'figure')} were compared"
    if not outside:
        return "All figures of the periods are within the intervals that the probabilities imply."
    return f"Outside the intervals that the probabilities imply: {'; '.join(outside)} ({by_chance})."


def _lowest_and_highest_text(where: str, groups: Sequence[Group]) -> str:
    """Return where the log-loss and the AUC of groups are lowest and highest."""
    parts = []
    for name in ("log_loss", "auc"):
        known = [(own, group.value or "missing") for group in groups if (own := group.metrics[name]) is not None]
        if known:
            (low, at_low), (high, at_high) = min(known), max(known)
            parts.append(f"{_NAMES[name]} {figure(low)} ({at_low}) to {figure(high)} ({at_high})")
    return f"{where}: {', '.join(parts) or 'no figures'}."
