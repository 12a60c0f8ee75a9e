"""What the page of Greiner et al. says in words."""

from __future__ import annotations

from tests.published.greiner_studies import RUNS

INTRODUCTION = """# Probabilities learned to classify, on complete rows and on rows with holes

Written by `BNCLI_DATA=FOLDER python -m tests.published.greiner_measure` from greiner.csv, greiner_shares.csv and
greiner_studies.csv; the paper's figures are in greiner_tables.csv (Tables 2 and 3) and greiner_claims.csv (Tables 4 and
5, p-values of the text). The paper is Greiner, Su, Shen & Zhou, *Structural extension to logistic regression*
(technical report of 23 April 2004; Machine Learning 59, 2005).

| paper | here |
| --- | --- |
| OFE | `--param map`: relative frequencies, on rows with holes those of the rows that have a node and all its parents |
| ELR | `--param extended --optimizer cg --penalty 0 --early-stop cv`, from OFE |
| APN | `--param apn --optimizer cg`, from OFE |
| EM | `--param em`, from OFE |

These are the learners of `bncli compare --preset greiner`: all with `--missing-policy marginalize`, smoothing
`m-estimate:1` (the paper leaves the smoothing open) and MDL cuts, and what iterates with `--max-iterations 60
--tolerance 1e-6`.

24 of the paper's 25 tables: `diabetes` is the same table as `pima`. corral and mofn-3-7-10 are written out from their
definitions (`targets.py` says how); rows with missing values are left out, as there. 5 stratified folds, or as many
rows held out as in the paper. Each value is removed with probability 0.25, completely at random.

The paper's general networks (GBN) come from PowerConstructor; here they come from `--structure gbn`, tests of
independence too. The threshold starts at its 0.01 bits and doubles until the tables hold at most 20,000 probabilities,
without which many of these networks, from few rows, would have millions. On complete rows the network is learned from
the rows that are learned from, on rows with holes once, from all rows before the holes, both as in the paper.

One figure depends on the rounding of the processor: GBN+ELR on iris, learned from rows with holes. In one of its
five folds the fit without a penalty is still changing when it stops. With the kernels of OpenBLAS for five kinds of
processor its log-loss is between 0.478 and 0.482, and the accuracies differ by a row."""

COMPARISONS = """Paired one-sided t-tests over tables, the paper's test: p that the first is not more accurate (t p of
`bncli compare`). x+ pairs all three structures at once. The first is whom the paper's arrow points to, its p as
printed, of the text with the section. Then the same test on the means printed in its Tables 2 and 3; then on ours. At
the right the same comparison in log-loss, of which the paper has no figures: negative is better, p that the first is
not lower.

- Eleven arrows, as the text of the paper at hand has them, point to the one that is on average *less* accurate in its
  own Tables 2 and 3, and the p beside them is that of the other direction: GBN+y against NB+APN and NB+EM, TAN+ELR
  against TAN+APN and TAN+EM, and GBN+APN against GBN+EM (Table 5), TAN+OFE against NB+ELR and GBN+OFE against NB+OFE
  (Table 4; of the last the text says the opposite). So are two of those about good networks, further below.
- Its tables do not give four more p: NB+ELR against GBN+ELR (0.038, not 0.01), TAN+ELR against TAN+OFE (0.12 as in
  Table 4, not 0.025), x+ELR against x+APN and x+EM (0.014 and 0.013, not 0.0015).

"Holes" are in the rows that are learned from only; "everywhere", in those that are predicted too. The paper does not
say which it did, but its accuracies (chess, NB+ELR: 95.4 complete, 94.6 with holes) fit the first."""

NETWORKS = """Mean accuracy in percent over all tables, over those on which the paper's general networks are good (20
there, 19 here) and over the five on which they are bad (satimage, segment, soybean-large, vehicle, waveform-21); in
parentheses the means of the paper's Tables 2 and 3, of which Figure 10 is a drawing. Then what its text tests of good
and bad apart."""

SHARES = """Accuracy in percent on letter, 15,000 rows to learn from and 5,000 to predict, as in the paper, whose
Figure 7b is a drawing without numbers. A value that is missing at a small share is missing at any larger one. The
general network is that of the complete rows (at 0 %, of those to learn from). At 25 % learning takes 8 seconds of
processor time with naive Bayes, 21 with TAN, 11 with the general network, the search for it included. The paper gives
the poor, but uniform accuracies on this table as its reason; in its Table 3 they are from 67 to 85 %, and uniform is
only glass (35.7 % throughout) and mofn-3-7-10 (82.0 %)."""

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

HOLDS = """What this list says of the figures here, `test_greiner.py` asserts.

- ELR is more accurate than OFE on complete rows, over all structures and with naive Bayes by much, with TAN by little
  (p 0.02), with general networks not significantly, all as in its text. The log-loss is lower with each of the three.
- Learned from rows with holes, ELR is more accurate than APN and EM, over all structures (p at most 0.0023; paper:
  0.0015) and with naive Bayes, where p is as small as in the paper. With TAN only the lead over APN is significant; in
  the paper neither is. With general networks neither is; in the paper that over APN is, at 0.05.
- Where predicted rows have holes too, ELR is not significantly more accurate than EM, though it is more than OFE and,
  barely, APN; its log-loss is lower than that of all three.
- NB+ELR and TAN+ELR beat general networks, however their probabilities are learned, with holes and without. TAN+ELR is
  not significantly better than NB+ELR. All this is so in the paper.
- In 14 of the 15 pairs of Table 4 and 32 of the 36 of Table 5 the same learner is ahead on average here and in the
  paper's Tables 2 and 3. The other five are not significant there.
- Not so here: on the tables where they are good, the paper's general networks beat naive Bayes, OFE with OFE. Here they
  do not, and NB+ELR and TAN+ELR beat them there too. On the five others they are as bad here as there.
- On letter, with as many values missing as half, ELR is the most accurate of the four with every structure.
  Its lead over EM shrinks: with naive Bayes it is 11.5 points at 5 %, 5.2 at 50 and 1.6 at 75, with TAN 2.9 and 0.9,
  and at 75 % EM is ahead by 0.3.
- APN is no better than EM; with TAN, EM beats it. In log-loss APN, whose likelihood is not smoothed, is far behind. In
  naive Bayes EM is OFE: a missing value says nothing of another one. EM beats available cases (OFE) a little, in
  accuracy and in log-loss.
- A structure that is ever more wrong misleads OFE, APN and EM to twice the least possible error and more. ELR from
  complete rows stays within 0.2 points of it, from rows of which half the values are missing within 1.6 points, but
  where all five attributes are copies: 18 % against 10 %.
- A structure that says too much: in chain, OFE beats ELR on complete rows (in the paper insignificantly), and EM with
  holes. In single, OFE beats ELR only where E1 agrees with the class in 98% of rows, and only with frequencies as they
  are (`mle`, the paper's OFE); where E1 is the class, both unsmoothed ways are equal. Smoothed ones take more rows to
  trust E1, and ELR is ahead.
- Not so here: with holes, in single, APN and EM do not beat ELR."""
