"""Jobs of other libraries, called as their documents show. Nothing of this project is imported here.

Begin with `numpy_runner`.
"""
