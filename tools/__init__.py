"""Tools of this repository: they are not part of the package."""
