"""`--structure auto`: many models of tables tried on rows held out, and an ensemble of the best of them.

`learning.learn_auto` is the way in. One module a step: `grids` (how finely attributes are cut and binned), `candidates`
(which tables a model has) and `capacity` (how many), `trials` (one candidate after the other), `pruning` and `budget`
(which are worth it, and affordable), `paths` and `choice` (penalties, by rows held out), `boosted` (a bag of trees),
`ensemble` (weights).
"""
