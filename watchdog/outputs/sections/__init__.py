"""The sections of a page, one a file: each takes a report and gives a section, or none where there is nothing to say."""
