"""Each recursion over the cluster tree once, over scalars of any kind."""
