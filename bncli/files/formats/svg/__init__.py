"""Pictures as SVG text, one module a kind: all stand on `drawing` (a sheet of paper) and `axes` (round numbers)."""
