"""Tables and models as files: what the verbs read."""
