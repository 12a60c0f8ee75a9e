"""The command line: one module per command, which turns its arguments into a call of the step with the same name.

Modules that `--help` loads import numpy, rich and the steps only inside functions, so that the help appears at once.

- `main`, `memory_limit`: run a command; turn errors into one line and an exit code
- `commands`, `command`: the list of commands; the layout of their help, and hints for options that do not exist
- `options`, `learning_options`: options of the command line; `config`: options from a file or environment variables
- `console`, `terminal_tables`, `model_text`: what several commands print
- `manual_pages`: the manual as a web site and as man pages
- the commands: `calibrate`, `compare`, `completion`, `config`, `convergence`, `count`, `describe`, `diff`,
  `discretize`, `dossier`, `edit`, `encode`, `evaluate`, `explain`, `export`, `fit`, `help`, `import`, `inspect`,
  `learn_structure`, `merge`, `monitor`, `report`, `score`, `simulate`, `verify`
"""
