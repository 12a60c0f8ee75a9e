"""Pictures as SVG, and the report page.

drawing     lines, text, axes: the only module that writes SVG
curve_plots, convergence_plots, effect_plots, heat_maps, network_drawings, rank_diagram
page        the HTML page: blocks, sections, style and script (page.css, page.js)
"""
