"""The AISTATS 2020 paper: its method (`method="paper"`) and its experiments (`gpcert reproduce`)."""
