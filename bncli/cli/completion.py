"""`bncli completion`: the script with which a shell completes command lines of `bncli`.

The script calls `bncli` with the line up to the cursor and the environment variable `_BNCLI_COMPLETE`.
`print_completions` prints one line per completion: its type, its value and its meaning, separated by tabs. The shell
quotes the names of columns before it inserts them into the command line.
"""

from __future__ import annotations

import os
from typing import Any

import click
from click.shell_completion import CompletionItem, ShellComplete, split_arg_string

from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.commands import COMPLETION_VARIABLE, group
from bncli.cli.console import Console

EXAMPLES = """\
bncli completion bash > ~/.local/share/bash-completion/completions/bncli
bncli completion zsh > ~/.zfunc/_bncli             with fpath+=~/.zfunc before compinit
bncli completion fish > ~/.config/fish/completions/bncli.fish
"""

_BASH = """\
_bncli_completion() {
    local type value meaning current=${COMP_WORDS[COMP_CWORD]}
    COMPREPLY=()
    while IFS=$'\\t' read -r type value meaning; do
        if [[ $type == file ]]; then
            compopt -o default
        elif [[ $current == [\\'\\"]* ]]; then
            [[ $value == *[\\'\\"\\$\\`\\\\!]* ]] || COMPREPLY+=("$value")
        elif [[ $type == plain ]]; then
            COMPREPLY+=("$(printf %q "$value")")
        fi
    done < <(COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_CURRENT="$current" \\
        _BNCLI_COMPLETE=bash_complete "$1" 2> /dev/null)
}

complete -o nosort -F _bncli_completion bncli
"""

_ZSH = """\
#compdef bncli

_bncli_completion() {
    local type value meaning
    local -a values described
    [[ ${words[CURRENT]} == --*=* ]] && compset -P '*='
    while IFS=$'\\t' read -r type value meaning; do
        if [[ $type == file ]]; then
            _path_files -f
        elif [[ -n $meaning ]]; then
            described+=("${value//:/\\\\:}:$meaning")
        elif [[ $type == plain ]]; then
            values+=("$value")
        fi
    done < <(COMP_LINE="${words[1,CURRENT]}" _BNCLI_COMPLETE=zsh_complete "${words[1]}" 2> /dev/null)
    (( ${#described} )) && _describe -V bncli described
    (( ${#values} )) && compadd -V bncli -a values
}

if [[ ${zsh_eval_context[-1]} == loadautofunc ]]; then
    _bncli_completion "$@"
else
    compdef _bncli_completion bncli
fi
"""

_FISH = """\
function _bncli_completion
    set -l word (commandline -ct)
    set -l option (string match -r '^--[^=]*=' -- $word)
    for line in (env COMP_LINE=(commandline -cp | string collect) _BNCLI_COMPLETE=fish_complete bncli 2> /dev/null)
        set -l item (string split -m 1 \\t -- $line)
        if test $item[1] = file
            for path in (__fish_complete_path (string replace -r '^--[^=]*=' '' -- $word))
                printf '%s\\n' "$option$path"
            end
        else
            printf '%s\\n' "$option$item[2]"
        end
    end
end

complete --no-files --command bncli --arguments '(_bncli_completion)'
"""


class Shell(ShellComplete):
    """A shell whose completion script follows the protocol of this module."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the complete words before the cursor, and the incomplete word at the cursor."""
        # With a letter appended, the incomplete word is always the last one, even if it is still empty.
        words = split_arg_string(os.environ.get("COMP_LINE", "") + "x")
        return words[1:-1], words[-1][:-1]

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """Return the completions that a shell can show, without values that are empty or not printable."""
        items = super().get_completions(args, incomplete)
        return [item for item in items if item.type == "file" or (item.value and item.value.isprintable())]

    def format_completion(self, item: CompletionItem) -> str:
        return f"{item.type}\t{item.value}\t{' '.join((item.help or '').split())}".rstrip("\t")


class Bash(Shell):
    """Bash, which breaks words at colons and equals signs, and replaces only the part after the last of these."""

    name = "bash"
    source_template = _BASH

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """Return the completions without the part of the word before its last break."""
        items = super().get_completions(args, incomplete)
        value = incomplete.partition("=")[2] if incomplete.startswith("--") and "=" in incomplete else incomplete
        current = os.environ.get("COMP_CURRENT", "").strip(":=")
        before = value.removesuffix(current) if ":" in value or "=" in value else ""
        return [CompletionItem(item.value.removeprefix(before), item.type) for item in items]


class Zsh(Shell):
    name = "zsh"
    source_template = _ZSH


class Fish(Shell):
    name = "fish"
    source_template = _FISH


SHELLS = {shell.name: shell for shell in (Bash, Zsh, Fish)}


def print_completions(instruction: str) -> None:
    """Print the completions for an instruction such as `bash_complete`, or the script for one such as `bash_source`.

    Nothing is printed for an unknown instruction or if an error occurs.
    """
    name, _, action = instruction.partition("_")
    if name not in SHELLS or action not in ("complete", "source"):
        return
    shell = SHELLS[name](group, {}, "bncli", COMPLETION_VARIABLE)
    try:
        text = shell.source_template if action == "source" else shell.complete()
    except Exception:
        # An error in the words or in the table must not disturb a user who is still typing.
        return
    if text:
        Console().text(f"{text}\n" if action == "complete" else text)


@declare(
    "completion",
    EXAMPLES,
    (click.argument("shell", type=click.Choice(list(SHELLS))), options.DEBUG),
    more="Completes commands, options, methods, files, and the columns of a table that is already on the command line.",
)
def command(**typed: Any) -> None:
    """Print the script."""
    Console().text(SHELLS[typed["shell"]].source_template)
