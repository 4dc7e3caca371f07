"""Jobs of other libraries, called as their documentation shows. These modules import nothing of this project.

Begin with `numpy_runner`.
"""
