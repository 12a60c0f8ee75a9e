"""`bncli completion`: the script by which a shell completes what is typed after `bncli`."""

from __future__ import annotations

from typing import Any

import click
from click.shell_completion import get_completion_class

from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.group import COMPLETE

EXAMPLES = """\
bncli completion bash > ~/.local/share/bash-completion/completions/bncli
bncli completion zsh > ~/.zfunc/_bncli             with fpath+=~/.zfunc before compinit
bncli completion fish > ~/.config/fish/completions/bncli.fish
"""


@declare(
    "completion",
    EXAMPLES,
    (click.argument("shell", type=click.Choice(["bash", "zsh", "fish"])), options.DEBUG),
    more="Completed are commands, options, methods, files, and the columns of the table that is typed already.",
)
def command(**typed: Any) -> None:
    """Prints the script."""
    from bncli.cli.group import group

    kind = get_completion_class(typed["shell"])
    assert kind is not None
    Console().text(kind(group, {}, "bncli", COMPLETE).source() + "\n")
