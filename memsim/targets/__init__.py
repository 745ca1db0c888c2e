"""The kernels that a project guards: their configuration, launches, and cached parallel analysis."""
