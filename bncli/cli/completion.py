"""`bncli completion`: the script by which a shell completes what is typed after `bncli`.

What the scripts of `bncli completion` ask for: the words that fit where the cursor stands.

A script hands over the line up to the cursor; the answer has a line an item: its type, its value and its meaning, with
tabs between them. What a table calls its columns is quoted by the shell before it reaches the command line.
"""

from __future__ import annotations

import os
from typing import Any

import click
from click.shell_completion import CompletionItem, ShellComplete, split_arg_string

from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.group import COMPLETE, group

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
    """A shell whose script speaks as the module says."""

    def source(self) -> str:
        """Return the script as it is."""
        return self.source_template

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the cursor, and the one begun.

        A letter put behind the line shows where that one begins.
        """
        words = split_arg_string(os.environ.get("COMP_LINE", "") + "x")
        return words[1:-1], words[-1][:-1]

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """Return what can be shown: a name with a line break in it, or an empty one, cannot be chosen."""
        items = super().get_completions(args, incomplete)
        return [item for item in items if item.type == "file" or (item.value and item.value.isprintable())]

    def format_completion(self, item: CompletionItem) -> str:
        """Return an item as a line."""
        return f"{item.type}\t{item.value}\t{' '.join((item.help or '').split())}".rstrip("\t")


class Bash(Shell):
    """Bash breaks words at colons and equals signs, and replaces what stands behind the last of them."""

    name = "bash"
    source_template = _BASH

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """Without what stands before the last break of the word."""
        items = super().get_completions(args, incomplete)
        value = incomplete.partition("=")[2] if incomplete.startswith("--") and "=" in incomplete else incomplete
        current = os.environ.get("COMP_CURRENT", "").strip(":=")
        before = value.removesuffix(current) if ":" in value or "=" in value else ""
        return [CompletionItem(item.value.removeprefix(before), item.type) for item in items]


class Zsh(Shell):
    """Zsh."""

    name = "zsh"
    source_template = _ZSH


class Fish(Shell):
    """Fish."""

    name = "fish"
    source_template = _FISH


SHELLS = {shell.name: shell for shell in (Bash, Zsh, Fish)}


def answer(instruction: str) -> None:
    """Print what fits; nothing where the question cannot be understood or a table cannot be read."""
    name, _, verb = instruction.partition("_")
    if name not in SHELLS or verb not in ("complete", "source"):
        return
    shell = SHELLS[name](group, {}, "bncli", COMPLETE)
    try:
        text = shell.source() if verb == "source" else shell.complete()
    except Exception:
        # Whoever is typing must not be disturbed, whatever is wrong with the words or the table.
        return
    if text:
        Console().text(f"{text}\n" if verb == "complete" else text)


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
    """Print the script."""
    Console().text(SHELLS[typed["shell"]](group, {}, "bncli", COMPLETE).source())
