"""Traces are read as `fit` writes them; whatever else a file may be is one line of error that says where."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bncli.errors import BncliError
from bncli.steps.convergence import Trace, read_trace
from bncli.steps.run import Recorder
from bncli.watch import Iteration, silent
from tests.sweeps import examples


def test_what_fit_writes_is_read(tmp_path: Path) -> None:
    recorder = Recorder(silent)
    recorder(Iteration(0, -10.5, 0.25, 1.0, 0.0, 1, 1, 0))
    recorder(Iteration(1, -4.0, 0.5, 0.1, 1.0, 4, 6, 123))
    recorder.write_trace(str(path := tmp_path / "t.csv"))
    trace = read_trace(str(path))
    assert trace.likelihood == "cll"
    assert [(p.iteration, p.nll, p.penalty, p.passes, p.flops) for p in trace.points] == [
        (0, 10.5, 0.25, 1, 0.0),
        (1, 4.0, 0.5, 6, 123.0),
    ]


def test_a_count_may_be_the_largest(tmp_path: Path) -> None:
    assert read(tmp_path, "iteration,cll\n1000000000,-1\n").points[0].iteration == 10**9


def test_the_joint_likelihood_and_what_is_not_told(tmp_path: Path) -> None:
    trace = read(tmp_path, "iteration,cll,ll\n0,,-3\n7,,-2\n")
    assert trace.likelihood == "ll"
    assert [(p.iteration, p.nll, p.penalty, p.passes, p.flops) for p in trace.points] == [
        (0, 3.0, 0.0, None, None),
        (7, 2.0, 0.0, None, None),
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "the file is empty"),
        ("\n", "the file is empty"),
        ("iteration,cll\n", "the trace has no iterations"),
        ("a,b\n1,2\n", "no column 'iteration'"),
        ("iteration,b\n1,2\n", "no column 'cll'"),
        ("iteration,cll,cll\n1,2,3\n", "two columns 'cll'"),
        ("iteration,cll\n0,-1\n2,-1\n1,-1\n", "iteration 1 comes after iteration 2, TRACE, line 4"),
        ("iteration,cll\n0,-1\n0,-1\n", "iteration 0 comes after iteration 0"),
        ("iteration,cll\n0,nan\n", "cll is not finite: 'nan', TRACE, line 2"),
        ("iteration,cll\n0,-inf\n", "cll is not finite"),
        ("iteration,cll\n0,x\n", "cll is not a number: 'x'"),
        ("iteration,cll\n0.5,-1\n", "iteration is not a whole number"),
        ("iteration,cll\n-1,-1\n", "iteration is not a whole number"),
        ("iteration,cll\n0,-1,3\n", "expected 2 fields, found 3"),
        ("iteration,cll\n0,-1\n\n", "expected 2 fields, found 0, TRACE, line 3"),
        ("iteration,cll,ll\n0,,\n", "the row has neither cll nor ll"),
        ("iteration,cll,ll\n0,-1,\n1,,-1\n", "this row has ll, but earlier rows have cll"),
        ("iteration,cll,flops\n0,-1,many\n", "flops is not a number"),
        ("iteration,cll,cll_evaluations\n0,-1,1e400\n", "cll_evaluations is not finite"),
        ("iteration,cll,penalty\n0,-1e308,1e308\n", "cll is not between -1e+30 and 1e+30: '-1e308', TRACE, line 2"),
        ("iteration,cll,penalty\n0,-1,1e308\n", "penalty is not between -1e+30 and 1e+30"),
        ("iteration,cll\n0,-9\n1e20,-5\n", "iteration is more than 1,000,000,000: '1e20', TRACE, line 3"),
        ("iteration,cll,cll_evaluations\n0,-1,1e12\n", "cll_evaluations is more than 1,000,000,000"),
        ("iteration,cll\n0,1e-6\n", "cll is above 0, which is impossible for a log-likelihood: '1e-6', TRACE, line 2"),
        ("iteration,ll\n0,3\n", "ll is above 0"),
        (
            "iteration,cll,cll_evaluations\n0,-1,5\n1,-1,\n2,-1,4\n",
            "cll_evaluations decrease from 5 to 4, TRACE, line 4",
        ),
        ("iteration,cll,gradient_evaluations\n0,-1,5\n1,-1,4\n", "gradient_evaluations decrease from 5 to 4"),
        ("iteration,cll,flops\n0,-1,5.5\n1,-1,4\n", "flops decrease from 5.5 to 4, TRACE, line 3"),
        ("iteration,cll,flops,seconds\n0,-1,1,1\n1,-1,2,", "the last line is cut off, TRACE; write the trace again"),
        ("iteration,cll\n0,-123\n1,-12", "the last line is cut off"),
        ("iteration,cll,ll,seconds\n0,-1,,1\n1,-1", "expected 4 fields, found 2, TRACE, line 3"),
        ("iteration,cll\n0,-1\n1", "expected 2 fields, found 1, TRACE, line 3"),
        ("x" * 20_000, "a line is too long"),
        ("\x00\x01\x02", "no column 'iteration'"),
        ('iteration,cll\n"0\n', "expected 2 fields, found 1"),
    ],
)
def test_what_is_no_trace(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(BncliError) as caught:
        read(tmp_path, text)
    told_of = str(caught.value)
    assert told.replace("TRACE", str(tmp_path / "t.csv")) in told_of
    assert str(tmp_path / "t.csv") in told_of
    assert "\n" not in told_of


def test_rounding_may_come_out_above_0(tmp_path: Path) -> None:
    assert read(tmp_path, "iteration,cll\r\n0,1e-12\r\n").points[0].nll == -1e-12


@pytest.mark.parametrize("until", range(1, 12))
def test_a_trace_of_fit_that_was_cut_off_inside_its_last_line_is_refused(tmp_path: Path, until: int) -> None:
    recorder = Recorder(silent)
    recorder(Iteration(0, -10.5, 0.25, 1.0, 0.0, 1, 1, 0))
    recorder(Iteration(1, -4.0, 0.5, 0.1, 1.0, 4, 6, None))
    recorder.write_trace(str(path := tmp_path / "t.csv"))
    whole = path.read_text()
    with pytest.raises(BncliError, match=r"the last line is cut off|expected 10 fields"):
        read(tmp_path, whole.rstrip("\n")[:-until])


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_bytes(b"PAR1\xff\xfe\x80")
    with pytest.raises(BncliError, match="this is not a CSV file"):
        read_trace(str(tmp_path / "b.csv"))
    with pytest.raises(BncliError, match=r"no such file.*did you mean .*b\.csv"):
        read_trace(str(tmp_path / "c.csv"))
    with pytest.raises(BncliError, match="cannot read: this is a folder"):
        read_trace(str(tmp_path))


@settings(max_examples=examples(50), deadline=None)
@given(text=st.text(st.sampled_from("iteration,cll\n\r\"'0123456789.-+eENaninf "), max_size=80))
def test_any_text_is_a_trace_or_an_error(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_text("iteration,cll\n" + text)
    try:
        trace = read_trace(str(path))
    except BncliError:
        return
    iterations = [point.iteration for point in trace.points]
    assert iterations == sorted(set(iterations))
    assert iterations


def read(folder: Path, text: str) -> Trace:
    (folder / "t.csv").write_text(text)
    return read_trace(str(folder / "t.csv"))
