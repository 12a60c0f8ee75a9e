"""Parameter learners: the methods of the option `--param`.

- `closed_form`: map, acll and acll-uniform of networks, kmap and kbma of regions, which need no optimizer
- `conditional`: weighted, discriminative, extended, lr and lr-roos, which maximise the conditional likelihood
- `missing_values`: em and apn, and the parameter space of `extended` for rows with missing values
- `points`: score cards with few rows and integer points

A method is a function `learn_WORD(counts, structure, *, <options>, watch) -> Parameters` with the options that the
catalogue lists. Methods that maximise the conditional likelihood also have `build_space_WORD(counts, structure, *,
<options>) -> Space`, which cross-validation uses. In a module of its own, a method's functions are called `learn` and
`build_space`.
"""
