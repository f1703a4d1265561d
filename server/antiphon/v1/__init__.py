"""Generated code of the schema in `proto/antiphon/v1`: write nothing here by hand."""
