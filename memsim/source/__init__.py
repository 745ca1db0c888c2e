"""What CUDA source says that compiled code does not: names and C types of kernel parameters, shapes of shared
arrays, templates, launches.
"""
