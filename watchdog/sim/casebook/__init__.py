"""The casebook as data: public reports with a known right answer, as files that jobs like theirs would have left."""
