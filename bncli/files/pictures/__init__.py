"""Pictures as SVG, and HTML pages.

- `drawing`: lines, text, axes and panels; it writes the SVG of all other modules
- `curve_plots`: ROC and similar curves, learning curves, convergence, one number over several files
- `comparison_plots`: critical-difference diagrams and scatter plots of learners
- `effect_plots`: effects, heat maps, nomograms, confusion matrices
- `network_drawings`: networks and regions
- `page`: HTML pages made of blocks, with their style sheet and script; formatting of numbers and lists for them
"""
