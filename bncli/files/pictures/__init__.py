"""Pictures as SVG, and the report page."""
