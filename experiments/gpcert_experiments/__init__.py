"""Research around the paper of 2020: the published method (`paper`) and its experiments (`reproduce`)."""
