"""Reports on a model: what is wrong with it, what motors can do, what approximation costs."""
