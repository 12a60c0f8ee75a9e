"""The command line: one module per command, which turns typed words into a call of the step of the same name.

Modules that `--help` loads import numpy, rich and the steps only inside functions, so that help appears at once.

- `main`, `memory_limit`: run a command; errors as one line and an exit code
- `commands`, `command`: the list of commands, and the layout of their help
- `options`, `learning_options`, `learners`, `settings`: what may be typed, and what may be set
- `unknown_options`: suggestions for options that do not exist
- `console`, `progress_bar`, `terminal_tables`, `model_text`: what several commands print
- `comparison_tables`, `effect_tables`, `evaluation_tables`: what one command prints
- `topics`, `manual_site`, `man_pages`: the manual and a search in it, as a web site, and as man pages
- the commands: `calibrate`, `compare`, `completion`, `config`, `convergence`, `count`, `describe`, `diff`,
  `discretize`, `dossier`, `edit`, `encode`, `evaluate`, `explain`, `export`, `fit`, `help`, `import`, `inspect`,
  `learn_structure`, `merge`, `monitor`, `report`, `score`, `simulate`, `verify`
"""
