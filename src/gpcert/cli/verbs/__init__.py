"""One module per verb: it says what it takes, asks one public question, and shows the answers."""
