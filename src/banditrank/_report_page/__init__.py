"""Pages of reports: one self-contained file of tables and figures that works offline."""
