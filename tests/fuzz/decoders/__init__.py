"""The fuzz targets, one module each; `targets` says what is in them."""
