"""What the pages of every model share: lists, filters, verbs with a confirmation, HTML."""
