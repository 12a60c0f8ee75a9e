"""The report page of a model.

report                  the page as a whole, and the command
performance_section, effects_section, what_if_section, structure_section, reliability_section
other_models            further models scored on the same rows
table_pages, monitor_page    pages of `describe`, `compare` and `monitor`
page_text               words and numbers that all sections share
"""
