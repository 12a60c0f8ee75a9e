"""The items of three checklists in our own words, the fields and facts that answer each, and the file ABOUT.toml.

- TRIPOD+AI: 27 items, some of them in parts, for prediction models (Collins et al. 2024, BMJ 385:e078378).
- Model validation in banks: conceptual soundness, ongoing monitoring and outcomes analysis, as in SR 26-2 of the
  Federal Reserve (2026), the successor of SR 11-7 (2011), with items on governance and disclosure.
- Annex IV of Regulation (EU) 2024/1689: the technical documentation of a high-risk AI system.

An answer consists of fields of ABOUT.toml (`FIELDS`), which only a person can fill in, and of facts, which follow from
the model and its test rows (`dossier.facts_of`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, NamedTuple

from bncli.errors import BncliError
from bncli.files.json_documents import decode_utf8
from bncli.files.paths import cannot_read

STATUSES = ("provided", "partly provided", "not provided")


class Item(NamedTuple):
    """An item of a checklist: its number, title and question, and the names of the fields and facts that answer it."""

    number: str
    title: str
    question: str
    fields: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()


class Answer(NamedTuple):
    """The answer to an item: what a person wrote, what follows from the model, and which fields are empty.

    status: `not provided` if there is neither text nor fact, `partly provided` if some field is empty, or `provided`.
    """

    item: Item
    about: tuple[str, ...]
    facts: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def status(self) -> str:
        if not self.about and not self.facts:
            return STATUSES[2]
        return STATUSES[1] if self.missing else STATUSES[0]

    def as_json(self) -> dict[str, Any]:
        """Return the answer and its item as JSON values."""
        return {
            "item": self.item.number,
            "title": self.item.title,
            "question": self.item.question,
            "status": self.status,
            "about": list(self.about),
            "facts": list(self.facts),
            "missing": list(self.missing),
        }


class Checklist(NamedTuple):
    """A checklist: its key in the JSON, its title, its subject, and its items."""

    word: str
    title: str
    subject: str
    items: tuple[Item, ...]

    def answer(self, about: About, facts: Mapping[str, str]) -> list[Answer]:
        """Return the answers to all items, in order; `facts` holds only facts that apply to the model."""
        return [
            Answer(
                item,
                tuple(about.fields[name] for name in item.fields if name in about.fields),
                tuple(facts[name] for name in item.facts if facts.get(name)),
                tuple(name for name in item.fields if name not in about.fields),
            )
            for item in self.items
        ]


TRIPOD = Checklist(
    "tripod_ai",
    "TRIPOD+AI",
    "Reporting of prediction models (TRIPOD+AI, Collins et al. 2024)",
    (
        Item("1", "Title", "What kind of model, for whom, and which outcome?", ("title",), ("model",)),
        Item("2", "Abstract", "A short summary of the study.", ("summary",), ("performance",)),
        Item("3a", "Context", "Why is a model needed, and which models exist already?", ("rationale",)),
        Item(
            "3b",
            "Target population and use",
            "Who uses the model, when, and for whom?",
            ("population", "users", "intended_use"),
        ),
        Item("3c", "Inequalities", "Which inequalities between groups are known?", ("inequalities",)),
        Item("4", "Objectives", "Development, evaluation, or both?", ("objectives",)),
        Item(
            "5a", "Data source", "Where do the data come from? Are they representative?", ("data_source",), ("files",)
        ),
        Item("5b", "Dates", "Which period do the data cover?", ("data_dates",), ("dates",)),
        Item("6a", "Setting", "Where were the data collected?", ("setting",)),
        Item("6b", "Eligibility", "Which cases were included?", ("eligibility",)),
        Item("6c", "Treatments", "Which treatments were given?", ("treatments",)),
        Item("7", "Data preparation", "How were data prepared and checked?", ("data_preparation",), ("preparation",)),
        Item("8a", "Outcome", "What is predicted, and when is it known?", ("outcome_definition",), ("outcome",)),
        Item("8b", "Assessment of the outcome", "Who determined the outcome, and how?", ("outcome_assessment",)),
        Item("8c", "Blinding of the outcome", "Were the assessors unaware of the attributes?", ("outcome_assessment",)),
        Item("9a", "Choice of predictors", "Why these predictors?", ("attribute_selection",), ("selection",)),
        Item("9b", "Predictors", "How and when are they measured?", ("attributes",), ("attributes",)),
        Item("9c", "Assessment of predictors", "Who measured them, and with which information?", ("attributes",)),
        Item("10", "Sample size", "How was the number of rows chosen?", ("sample_size",), ("sample_size",)),
        Item("11", "Missing data", "How are missing values handled?", (), ("missing",)),
        Item("12a", "Use of the data", "Which rows were used for training, and which for testing?", (), ("partition",)),
        Item("12b", "Handling of predictors", "Transformations and cuts.", (), ("preparation",)),
        Item("12c", "Model", "Kind, choices, tuning, internal validation.", ("method_choice",), ("method", "tuning")),
        Item("12d", "Heterogeneity", "How were differences between groups estimated?", (), ("heterogeneity",)),
        Item("12e", "Measures", "Which measures of performance, and why?", (), ("measures",)),
        Item("12f", "Updating", "Was the model changed after its evaluation?", ("updating",), ("changes",)),
        Item("12g", "Evaluation", "How were predictions computed?", (), ("prediction",)),
        Item("13", "Class imbalance", "Were classes weighted, and were probabilities corrected?", (), ("imbalance",)),
        Item("14", "Fairness", "What was done for fairness, and why?", ("fairness",), ("fairness",)),
        Item("15", "Output", "What does the model return, and how are decisions made?", (), ("output",)),
        Item("16", "Training and evaluation", "How do the two sets of rows differ?", (), ("drift",)),
        Item("17", "Ethics", "Ethical approval and consent.", ("ethics",)),
        Item("18a", "Funding", "Who funded the study?", ("funding",)),
        Item("18b", "Conflicts of interest", "Are there any conflicts of interest?", ("conflicts",)),
        Item("18c", "Protocol", "Where is the study protocol available?", ("protocol",)),
        Item("18d", "Registration", "Where is the study registered?", ("registration",)),
        Item("18e", "Data sharing", "Who can get the data?", ("data_access",)),
        Item("18f", "Code sharing", "Who can get the code?", ("code_access",), ("software",)),
        Item("19", "Involvement", "How did patients or the public take part?", ("involvement",)),
        Item("20a", "Flow", "How many cases were there at each stage?", ("flow",), ("rows",)),
        Item(
            "20b", "Characteristics", "Distributions of the attributes, and missing values.", (), ("characteristics",)
        ),
        Item("20c", "Comparison", "How do the test rows compare with the training rows?", (), ("drift",)),
        Item("21", "Model development", "Number of training rows and events.", (), ("development",)),
        Item("22", "Specification", "The full model, so that it can be recomputed.", (), ("specification",)),
        Item("23a", "Performance", "Figures with intervals.", (), ("performance", "calibration", "net_benefit")),
        Item("23b", "Heterogeneity of performance", "Figures of groups and periods.", (), ("groups", "periods")),
        Item("24", "Results of updating", "The updated model and its figures.", ("updating",), ("changes",)),
        Item("25", "Interpretation", "What do the results mean?", ("interpretation",), ("challenger",)),
        Item("26", "Limitations", "What are the limits of the data and the model?", ("limitations",), ("warnings",)),
        Item("27a", "Poor inputs", "What if values are missing or unknown?", ("usability",), ("unknown_values",)),
        Item("27b", "Users", "What must users do and know?", ("users", "usability")),
        Item("27c", "Next steps", "What remains to be shown?", ("next_steps",)),
    ),
)
VALIDATION = Checklist(
    "model_validation",
    "Model validation",
    "Conceptual soundness, ongoing monitoring and outcomes analysis, as in SR 26-2, the successor of SR 11-7",
    (
        Item("P1", "Purpose", "What is the model used for?", ("intended_use",), ("model",)),
        Item("P2", "Materiality", "How much depends on the model?", ("materiality",)),
        Item("G1", "Ownership", "Who owns it, who approved it, and where is it listed?", ("responsible", "governance")),
        Item("G2", "Independent validation", "Who validated it, and with what result?", ("validation",)),
        Item("G3", "Change control", "Versions and changes, with reasons.", ("version",), ("changes",)),
        Item("G4", "Documentation", "Could a third party rebuild it?", (), ("specification", "files", "software")),
        Item("C1", "Design", "Is the method suitable? Which alternatives exist?", ("method_choice",), ("method",)),
        Item("C2", "Data", "Are the data suitable and correct?", ("data_source",), ("characteristics", "missing")),
        Item("C3", "Inputs", "Why these attributes, and what does each contribute?", ("attribute_selection",),
             ("attributes", "effects")),
        Item("C4", "Assumptions and limits", "Which of them are known?", ("limitations",), ("warnings",)),
        Item("C5", "Sensitivity", "How sensitive is the result to each input?", (), ("sensitivity",)),
        Item("C6", "Behaviour", "What is proven for all inputs?", (), ("certificates",)),
        Item("C7", "Implementation", "Does the file compute what was fitted?", (), ("self_test",)),
        Item("M1", "Monitoring plan", "What is monitored, and with which limits?", ("monitoring_plan",)),
        Item("M2", "Drift", "Do new rows still resemble the training rows?", (), ("drift",)),
        Item("M3", "Stability", "Is the performance stable over time?", (), ("periods",)),
        Item("M4", "Expected performance", "Which performance do the probabilities imply?", (), ("expected",)),
        Item("M5", "Overrides", "How are overrides recorded?", ("overrides",)),
        Item("O1", "Discrimination", "How well are events ranked?", (), ("performance",)),
        Item("O2", "Calibration", "Do probabilities match frequencies?", (), ("calibration",)),
        Item("O3", "Decisions", "Which threshold is used, and what is its benefit?", (), ("output", "net_benefit")),
        Item("O4", "Segments", "Figures by group.", (), ("groups", "fairness")),
        Item("O5", "Benchmark", "How does a challenger perform on the same rows?", (), ("challenger", "baseline")),
        Item("O6", "Out of sample", "Were the test rows unseen by the model?", (), ("partition",)),
        Item("D1", "Disclosure", "What does the file reveal about small numbers of rows?", (), ("disclosure",)),
    ),
)  # fmt: skip
ANNEX_IV = Checklist(
    "annex_iv",
    "Annex IV",
    "Technical documentation of a high-risk system, Regulation (EU) 2024/1689",
    (
        Item("1(a)", "Purpose, provider, version", "What is its purpose, who provides it, and which version is it?",
             ("intended_use", "responsible", "version"), ("model",)),
        Item("1(b)", "Interaction", "With which hardware and software does it work?", ("deployment",)),
        Item("1(c)", "Software versions", "Which software versions does it need?", (), ("software",)),
        Item("1(d)", "Forms of delivery", "How is it placed on the market?", ("deployment",)),
        Item("1(e)", "Hardware", "On which hardware does it run?", ("deployment",)),
        Item("1(f)", "Product", "If it is part of a product: pictures and markings of the product.", ("deployment",)),
        Item("1(g)", "User interface", "What does the deployer see?", ("instructions",)),
        Item("1(h)", "Instructions for use", "Where are the instructions for use?", ("instructions",)),
        Item("2(a)", "Development", "Methods, steps, and what came from third parties.",
             ("method_choice",), ("method",)),
        Item("2(b)", "Design", "Logic, choices, assumptions, what is optimized.", ("method_choice", "population"),
             ("method", "tuning", "effects")),
        Item("2(c)", "Architecture and resources", "How is it built, and which resources did training need?", (),
             ("specification", "software")),
        Item("2(d)", "Data", "Provenance, scope, selection, labelling, cleaning.",
             ("data_source", "outcome_assessment", "data_preparation"), ("characteristics", "outcome", "files")),
        Item("2(e)", "Human oversight", "Which measures help people to interpret the output?", ("oversight",),
             ("effects",)),
        Item("2(f)", "Planned changes", "Which changes are determined in advance?", ("updating",), ("changes",)),
        Item("2(g)", "Validation and testing", "Test data, metrics, discrimination, logs.", ("validation",),
             ("partition", "measures", "performance", "fairness")),
        Item("2(h)", "Cybersecurity", "Which cybersecurity measures are in place?", ("security",), ("disclosure",)),
        Item("3", "Monitoring, functioning, control", "Accuracy, for groups too; unintended outcomes; input data.",
             ("limitations", "risks", "oversight"), ("performance", "groups", "unknown_values", "certificates")),
        Item("4", "Appropriate metrics", "Why are these metrics appropriate?", (), ("measures",)),
        Item("5", "Risk management", "The risk management system (Article 9).", ("risks",)),
        Item("6", "Changes in the life cycle", "What did the provider change?", ("version", "updating"), ("changes",)),
        Item("7", "Standards", "Which standards were applied?", ("standards",)),
        Item("8", "Declaration of conformity", "Where is the declaration of conformity?", ("conformity",)),
        Item("9", "Post-market monitoring", "The monitoring plan (Article 72).",
             ("monitoring_plan",), ("drift", "expected")),
    ),
)  # fmt: skip
CHECKLISTS: Sequence[Checklist] = (TRIPOD, VALIDATION, ANNEX_IV)


FIELDS: Mapping[str, str] = {
    "title": "Name of the model, as its users know it",
    "version": "Version of the model, and what changed since the one before",
    "summary": "The study in a few sentences, for those who read nothing else",
    "responsible": "Person or organization responsible for the model, and how to contact them",
    "intended_use": "What the predictions are used for, and which decisions are based on them",
    "users": "Who uses the predictions, and what they need to know",
    "rationale": "Why a model is needed, and which models exist already",
    "population": "Who or what the model may be applied to",
    "inequalities": "Known inequalities between groups of people, and how they were considered",
    "objectives": "Objectives of the study: development of the model, its evaluation, or both",
    "data_source": "Where training and test data come from, and whether they are representative",
    "data_dates": "First and last date of the data, and of the outcome",
    "setting": "Places in which the data were collected",
    "eligibility": "Which cases were included and which were excluded",
    "treatments": "Treatments or measures that affected the outcome",
    "data_preparation": "How the data were prepared before bncli read them, and how their quality was checked",
    "outcome_definition": "What the class means, and when it is known",
    "outcome_assessment": "Who determined the outcome, by which rule, and whether they knew the attributes",
    "attributes": "What the attributes mean, and how and when they are measured",
    "attribute_selection": "Why these attributes were chosen, and which were not",
    "sample_size": "How the number of rows was chosen",
    "method_choice": "Why this kind of model, and which alternatives and assumptions were considered",
    "fairness": "What was done for fairness, and why",
    "ethics": "Ethical approval and consent, or why they are not needed",
    "funding": "Who funded the study, and what role they had",
    "conflicts": "Conflicts of interest",
    "protocol": "Where the plan of the study is, and what changed since",
    "registration": "Where the study is registered",
    "data_access": "Who can get the data, and how",
    "code_access": "Who can get the code, and how",
    "involvement": "How patients, customers or the public took part",
    "flow": "How many cases there were at each stage, and why some were lost",
    "updating": "How the model was updated or will be: triggers, approvals, changes that are already planned",
    "interpretation": "What the results mean, compared with those of other studies",
    "limitations": "Limits of the data and of the model, and in which cases not to use it",
    "usability": "How inputs of poor quality are handled, and what users must do or know",
    "next_steps": "What remains to be shown",
    "materiality": "How much depends on the model, and what its errors cost",
    "validation": "Who validated the model independently of its developers, and what they found",
    "governance": "Who approved the model, who owns it, and where it is listed in the model inventory",
    "monitoring_plan": "Which figures are monitored after release, how often, with which limits and actions",
    "overrides": "How people may override a prediction, and how that is recorded",
    "oversight": "Who oversees the predictions, and by which means",
    "deployment": "How the model is delivered, with which systems it works, and on which hardware it runs",
    "instructions": "Instructions for use, and the interface that users see",
    "risks": "Risks to health, safety, rights or money, and how they are managed",
    "security": "Security measures, and logs that are kept",
    "standards": "Standards that were applied, in full or in part",
    "conformity": "The declaration of conformity: its place, its date and its signatory",
}
"""The fields of ABOUT.toml by name, each with a description of its content."""


@dataclass(frozen=True)
class About:
    """The fields that were filled in, and properties to be proven (`bncli help properties`)."""

    fields: Mapping[str, str] = field(default_factory=dict)
    properties: tuple[str, ...] = ()


def template() -> str:
    """Return the content of an ABOUT.toml in which all fields are empty."""
    lines = ["# What only you know about the model. An empty field is reported as not provided."]
    for name, text in FIELDS.items():
        lines += ["", f"# {text}.", f'{name} = ""']
    lines += ["", "# Statements to be proven for all inputs (bncli help properties).", "properties = []", ""]
    return "\n".join(lines)


def read_about(path: str) -> About:
    """Load the fields that are not empty, and the properties, from a file.

    Raises BncliError if the file cannot be read, is not valid TOML, or has unknown keys or values other than strings
    (for `properties`, a list of strings that are not blank).
    """
    try:
        with open(path, "rb") as file:
            content = tomllib.loads(decode_utf8(file.read(), path).replace("\r\n", "\n"))
    except OSError as error:
        raise cannot_read(path, error) from error
    except tomllib.TOMLDecodeError as error:
        what = f"the file is not valid TOML: {error}"
        raise BncliError(what, where=path, hint="type bncli dossier --template for a file to fill in") from None
    known = (*FIELDS, "properties")
    for name in content:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else "type bncli dossier --template for a list of all keys"
            raise BncliError(f"there is no key {name!r}", where=path, hint=hint)
    properties = content.pop("properties", [])
    if not isinstance(properties, list) or not all(isinstance(text, str) and text.strip() for text in properties):
        raise BncliError("'properties' is not a list of statements", where=path, hint='write properties = ["..."]')
    for name, value in content.items():
        if not isinstance(value, str):
            raise BncliError(f"{name!r} is not a string", where=path, hint=f'write {name} = "..."')
    fields = {name: " ".join(content[name].split()) for name in FIELDS if content.get(name, "").strip()}
    return About(fields, tuple(properties))
