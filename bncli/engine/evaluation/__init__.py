"""How good predictions are, and whether one method beats another.

`metrics` measures predictions, `validate` learns and measures fold by fold, `bias_variance` compares many trials. The
others compare methods by figures that are there already; their contract: functions of arrays in, a frozen record out.
Paired figures are two arrays of one length, an element for each data set in the same order, the first method's before
the second's; whether the higher or the lower figure is the better one is the caller's to know.
"""
