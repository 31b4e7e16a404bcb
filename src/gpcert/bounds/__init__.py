"""Certified bounds of a posterior over one box; the search knows them only as `BoxBound`."""
