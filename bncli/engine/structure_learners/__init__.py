"""Structure learners, one module per word typed after `--structure`.

Every such module has `learn(counts, *, <options>, watch) -> Dag` (or `Regions`), with the options that the catalogue
lists for it. The structure spans the informative attributes of `counts.schema`; it depends on the counts alone, and
every tie goes to the attribute that comes first in the schema.

- `nb`, `tan`, `kdb`, `skdb`, `hill_climb`, `gbn`: directed acyclic graphs
- `interactions`, `kikuchi`: regions
- `card`: the single attributes of a score card
- `dependence`: mutual informations, gains of arcs, and the attributes that are searched among very many
- `interaction_gains`: gains of sets of attributes on the residuals of a fit
"""
