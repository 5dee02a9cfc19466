"""Books and documents (EPUB, Word, PDF) as rows of headings and paragraphs."""
