"""What the page of Greiner et al. says in words."""

from __future__ import annotations

from tests.published.greiner_studies import RUNS

INTRODUCTION = """# Probabilities learnt to classify, on complete rows and on rows with holes

Written by `BNCLI_UPDATE=1 BNCLI_DATA=FOLDER pytest -m slow tests/published/test_greiner.py`. The paper is Greiner, Su,
Shen & Zhou, *Structural extension to logistic regression* (technical report of 23 April 2004; Machine Learning 59,
2005). OFE: smoothed relative frequencies (`--param map`), on rows with holes those of the rows that have a node and all
its parents. ELR: `--param extended --optimizer cg --early-stop cv`, from OFE. APN and EM: `--param apn` and `em`, from
OFE. At most 60 iterations each, smoothing `m-estimate:1`, MDL cuts; all with `--missing-policy marginalize`.

24 of the paper's 25 tables: `diabetes` is the same table as `pima`. corral and mofn-3-7-10 are written out from their
definitions (`targets.py` says how); rows with missing values are left out, as there. 5 stratified folds, or the rows
held out as in the paper, but of larger tables at most 2,000 rows to learn from and 2,000 to predict: `letter` is learnt
from an eighth of the paper's rows. Each value is removed with probability 0.25, completely at random.

The paper's general networks (GBN) come from PowerConstructor; here they come from `--structure gbn`, tests of
independence too. The threshold starts at its 0.01 bits and doubles until the tables hold at most 20,000 probabilities,
without which many of these networks, from few rows, would have millions. On complete rows the network is learnt from
the rows that are learnt from, on rows with holes once, from all rows before the holes, both as in the paper."""

COMPARISONS = """Paired one-sided t-tests over tables, the paper's test: p that the first is not more accurate. x+
pairs all three structures at once. Left the paper's p as its text or its Table 4, all pairs of which are here, gives
it, then the same test on the means printed in its Tables 2 and 3: they agree in most lines. Not in these: TAN+ELR
against TAN+OFE (0.12, as in its Table 4; 0.025 in the text); NB+ELR against GBN+ELR (0.038, not 0.01); on rows with
holes, TAN+ELR is on average *less* accurate than TAN+APN and TAN+EM in the printed table, and x+ELR beats x+APN and
x+EM at 0.014 and 0.013, not 0.0015. "Holes" are in the rows that are learnt from only; "everywhere", in those that
are predicted too. The paper does not say which it did, but its accuracies (chess, NB+ELR: 95.4 complete, 94.6 with
holes) fit the first."""

NETWORKS = """Mean accuracy in percent."""

SHARES = """LETTER."""

SIMPLER = f"""Errors in percent, means of {RUNS} samples of 400 rows, naive Bayes; E1 to Em are copies of one
another. Half the values are missing where it says holes; queries are complete. Errors are exact, over all
combinations of values. (m = 0 and m = 1 are the same distribution.) The paper shows a drawing (Figure 8): ELR stays
close to the best, OFE, APN and EM get ever worse."""

COMPLEX = f"""Errors in percent, means of {RUNS} samples. single: naive Bayes where the class is E1, or agrees with
it in 98% of rows (a correlation of 0.96), and the other attributes are coins. chain: TAN with arcs between
attributes that are independent given the class. A fifth of the values are missing where it says holes; queries are
complete. The paper (Figures 12 and 13, drawings) finds OFE better than ELR in single (p < 0.002; 0.001 for the
correlation of 0.96) and insignificantly so in chain; with holes APN and EM better than ELR (p < 0.02, 0.015), EM
better than APN (p < 0.025)."""

HOLDS = """- ELR is more accurate than OFE on complete rows, over all structures, and with naive Bayes by much; with TAN
  by little, with general networks by next to nothing, as in the paper. Its log-loss is lower with each of the three.
- Learnt from rows with holes, ELR is more accurate than APN and EM, over all structures and with naive Bayes, at much
  the same p as in the paper. Of TAN only the lead over APN is significant; in the paper neither is.
- Where predicted rows have holes too, ELR is no more accurate than EM, though more than OFE; its log-loss is barely
  lower than EM's.
- NB+ELR and TAN+ELR beat general networks, learnt either way; TAN+ELR is not significantly better than NB+ELR.
- An ever more wrong structure hurts OFE, APN and EM ever more, and ELR hardly, until half the values are missing and
  all five attributes are copies: there ELR too is far from the best.
- A structure that says too much: in chain, OFE and EM beat ELR, as in the paper (there insignificantly). In single, OFE
  beats ELR only where E1 agrees with the class in 98% of rows, and only with frequencies as they are (`mle`, the
  paper's OFE). With smoothed ones, which take more rows to trust E1, it is the other way round. Where E1 is the class,
  both unsmoothed ways are equal.
- Not so here: APN is no better than EM. Its likelihood is not smoothed, and in log-loss it is far behind; where it is
  better in the paper, it is insignificantly so. In naive Bayes, EM is OFE: a missing value says nothing of another one.
- EM beats available cases (OFE) a little, in accuracy and in log-loss."""
