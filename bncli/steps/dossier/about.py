"""What only a person knows about a model: the fields of ABOUT.toml, and the template of that file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from bncli.errors import BncliError
from bncli.files.json_documents import decode_utf8
from bncli.files.paths import cannot_read

FIELDS: Mapping[str, str] = {
    "title": "Name of the model, as its users know it",
    "version": "Version of the model, and what changed since the one before",
    "summary": "The study in a few sentences, for readers who read nothing else",
    "responsible": "Person or organisation responsible for the model, and how to reach them",
    "intended_use": "What the predictions are used for, and which decisions rest on them",
    "users": "Who uses the predictions, and what they need to know",
    "rationale": "Why a model is needed, and which models exist already",
    "population": "Who or what the model may be applied to",
    "inequalities": "Known inequalities between groups of people, and how they were considered",
    "objectives": "What was to be shown: development, evaluation, or both",
    "data_source": "Where training and test data come from, and whether they are representative",
    "data_dates": "First and last date of the data, and of the outcome",
    "setting": "Places in which the data were collected",
    "eligibility": "Which cases were included and which were not",
    "treatments": "Treatments or measures that affected the outcome",
    "data_preparation": "What was done to the data before bncli read them, and how their quality was checked",
    "outcome_definition": "What the class means, and when it is known",
    "outcome_assessment": "Who determined the outcome, by which rule, and whether they knew the attributes",
    "attributes": "What the attributes mean, and how and when they are measured",
    "attribute_selection": "Why these attributes were chosen, and which were not",
    "sample_size": "How the number of rows was arrived at",
    "method_choice": "Why this kind of model, and which alternatives and assumptions were considered",
    "fairness": "What was done for fairness, and why",
    "ethics": "Ethical approval and consent, or why they are not needed",
    "funding": "Who paid, and what part they had",
    "conflicts": "Conflicts of interest",
    "protocol": "Where the plan of the study is, and what changed since",
    "registration": "Where the study is registered",
    "data_access": "Who can get the data, and how",
    "code_access": "Who can get the code, and how",
    "involvement": "How patients, customers or the public took part",
    "flow": "How many cases there were at each stage, and why some were lost",
    "updating": "How the model was updated or will be: triggers, approvals, changes that are already planned",
    "interpretation": "What the results mean, beside those of other studies",
    "limitations": "Limits of the data and of the model, and in which cases not to use it",
    "usability": "How inputs of poor quality are handled, and what users must do or know",
    "next_steps": "What has to be shown next",
    "materiality": "How much depends on the model, and what its errors cost",
    "validation": "Who validated the model, independent of its developers, and what they found",
    "governance": "Who approved the model, who owns it, and where it stands in the inventory",
    "monitoring_plan": "Which figures are watched after release, how often, with which limits and actions",
    "overrides": "How people may overrule a prediction, and how that is recorded",
    "oversight": "Who oversees the predictions, and by which means",
    "deployment": "How the model is delivered, with which systems it works, and on which hardware it runs",
    "instructions": "Instructions for use, and the interface that users see",
    "risks": "Risks to health, safety, rights or money, and how they are managed",
    "security": "Measures of security, and logs that are kept",
    "standards": "Standards that were applied, in full or in part",
    "conformity": "The declaration of conformity: its place, its date and its signatory",
}
"""The fields by name, each with a description of its content."""


@dataclass(frozen=True)
class About:
    """The fields that were filled in, and properties to be proven (`bncli help properties`)."""

    fields: Mapping[str, str] = field(default_factory=dict)
    properties: tuple[str, ...] = ()


def template() -> str:
    """Return an ABOUT.toml with all fields, all of them empty."""
    lines = ["# What only you know about the model. An empty field is reported as not provided."]
    for name, text in FIELDS.items():
        lines += ["", f"# {text}.", f'{name} = ""']
    lines += ["", "# Statements to be proven for all inputs (bncli help properties).", "properties = []", ""]
    return "\n".join(lines)


def read_about(path: str) -> About:
    """Return the fields in a file; BncliError if it is not TOML, or has unknown keys or values other than text."""
    import tomllib

    try:
        with open(path, "rb") as file:
            content = tomllib.loads(decode_utf8(file.read(), path).replace("\r\n", "\n"))
    except OSError as error:
        raise cannot_read(path, error) from error
    except tomllib.TOMLDecodeError as error:
        what = f"this is not TOML: {error}"
        raise BncliError(what, where=path, hint="bncli dossier --template prints a file to fill in") from None
    known = (*FIELDS, "properties")
    for name in content:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else "bncli dossier --template prints all keys"
            raise BncliError(f"there is no key {name!r}", where=path, hint=hint)
    properties = content.pop("properties", [])
    if not isinstance(properties, list) or not all(isinstance(text, str) and text.strip() for text in properties):
        raise BncliError("'properties' is not a list of statements", where=path, hint='write properties = ["..."]')
    for name, value in content.items():
        if not isinstance(value, str):
            raise BncliError(f"{name!r} is not a text", where=path, hint=f'say {name} = "..."')
    fields = {name: " ".join(content[name].split()) for name in FIELDS if content.get(name, "").strip()}
    return About(fields, tuple(properties))
