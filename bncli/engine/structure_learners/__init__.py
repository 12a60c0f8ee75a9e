"""Structure learners, one module per method of `--structure`.

The module of a method has `learn(counts, *, <options>, watch) -> Dag` (or `Regions`), with the options that the
catalogue lists for it. The structure contains only informative attributes of `counts.schema`, and does not depend on
the order of the rows unless a sample or folds are drawn. Ties that no other rule decides go to the attribute that comes
first in the schema.

- `nb`, `tan`, `kdb`, `skdb`, `hill_climb`, `gbn`: directed acyclic graphs
- `interactions`, `kikuchi`: regions
- `card`: the single attributes of a score card
- `dependence`: mutual informations, gains of arcs, and the attributes that are searched among very many
- `interaction_gains`: gains of sets of attributes on the residuals of a fit
"""
