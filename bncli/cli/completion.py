"""`bncli completion`: the script by which a shell completes what is typed after `bncli`."""

from __future__ import annotations

from typing import Any

import click

from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.group import COMPLETE, group
from bncli.cli.shells import SHELLS

EXAMPLES = """\
bncli completion bash > ~/.local/share/bash-completion/completions/bncli
bncli completion zsh > ~/.zfunc/_bncli             with fpath+=~/.zfunc before compinit
bncli completion fish > ~/.config/fish/completions/bncli.fish
"""


@declare(
    "completion",
    EXAMPLES,
    (click.argument("shell", type=click.Choice(list(SHELLS))), options.DEBUG),
    more="Completed are commands, options, methods, files, and the columns of the table that is typed already.",
)
def command(**typed: Any) -> None:
    """Prints the script."""
    Console().text(SHELLS[typed["shell"]](group, {}, "bncli", COMPLETE).source())
