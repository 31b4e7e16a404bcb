"""`gpcert completion`: a script that completes verbs, options and files in bash, zsh or fish."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

DESCRIPTION = "Print a completion script: verbs, options, their choices, and file names."
EXAMPLES = """
  source <(gpcert completion bash)      # for this shell; the same line in ~/.bashrc for all
  gpcert completion zsh > "${fpath[1]}/_gpcert"
  gpcert completion fish > ~/.config/fish/completions/gpcert.fish
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("shell", choices=["bash", "zsh", "fish"])


def run(parsed: argparse.Namespace) -> int:
    """Print the script."""
    from gpcert.cli.main import VERBS, declare

    verbs = {}
    for verb in VERBS:
        parser = argparse.ArgumentParser()
        declare(parser, verb)
        verbs[verb] = dict(_options(parser))
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[parsed.shell](verbs), end="")
    return 0


def _options(verb: argparse.ArgumentParser) -> Iterator[tuple[str, tuple[str, ...] | None]]:
    for action in verb._actions:
        choices = None if action.choices is None else tuple(map(str, action.choices))
        for name in action.option_strings or ([""] if choices else []):
            yield name, choices


def _bash(verbs: dict[str, dict[str, tuple[str, ...] | None]]) -> str:
    cases = []
    for verb, options in verbs.items():
        for name, choices in options.items():
            if name and choices:
                cases.append(f'    "{verb} {name}") words="{" ".join(choices)}" ;;')
        words = " ".join([*(name for name in options if name), *(options.get("") or ())])
        cases.append(f'    "{verb} "*) [[ $cur == -* || {int("" in options)} == 1 ]] && words="{words}" ;;')
    body = "\n".join(cases)
    return f"""_gpcert() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} words=""
  if (( COMP_CWORD == 1 )); then
    COMPREPLY=($(compgen -W "{" ".join(verbs)} --help --version" -- "$cur"))
    return
  fi
  case "${{COMP_WORDS[1]}} $previous" in
{body}
  esac
  COMPREPLY=()
  [[ -n $words ]] && COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o default -F _gpcert gpcert
"""


def _zsh(verbs: dict[str, dict[str, tuple[str, ...] | None]]) -> str:
    # zsh runs bash's completion functions; one script to keep right.
    return "#compdef gpcert\nautoload -U +X bashcompinit && bashcompinit\n" + _bash(verbs)


def _fish(verbs: dict[str, dict[str, tuple[str, ...] | None]]) -> str:
    lines = [f"complete -c gpcert -n __fish_use_subcommand -f -a {verb}" for verb in verbs]
    for verb, options in verbs.items():
        used = f"-n '__fish_seen_subcommand_from {verb}'"
        for name, choices in options.items():
            given = f" -x -a '{' '.join(choices)}'" if choices else ""
            flag = f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}" if name else ""
            lines.append(f"complete -c gpcert {used}{flag}{given}")
    return "\n".join(lines) + "\n"
