"""`--structure auto`: many models of tables tried on rows held out, and the best of them blended.

`learning.learn_auto` is the way in. One module a step: `grids` (how finely attributes are cut and seen), `candidates`
(which tables a model has) and `capacity` (how many), `trials` (one candidate after the other), `promise` and `effort`
(which are worth it, and affordable), `paths` and `choice` (penalties, by rows held out), `blend` (weights).
"""
