"""Model folders as the host reads them: configuration and tokenizer, not weights."""
