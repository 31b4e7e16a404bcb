"""One affine functional a mu - tau S + kappa around one reference: exact there, with a proved remainder."""
