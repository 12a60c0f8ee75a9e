"""The files that bncli writes and reads again: models, cuts, structures, counts, codes, monitors, traces."""
