"""Structure learners, one module per word typed after `--structure`.

Every such module has `learn(counts, *, <options>, watch) -> Dag` (or `Regions`), with the options that the catalogue
lists for it. The structure spans the informative attributes of `counts.schema`; it depends on the counts alone, and
every tie goes to the attribute that comes first in the schema.

- `nb`, `tan`, `kdb`, `skdb`, `hill_climb`, `gbn`: directed acyclic graphs
- `interactions`, `kikuchi`: regions
- `card`: the single attributes of a score card
- `dependence`: mutual informations and gains of arcs
- `wide_tables`: the attributes that are searched in a table with very many columns
- `interaction_gains`, `region_growth`, `additive_fit`: gains of sets of attributes, and their cuts, on residuals of a
  quick fit
"""
