"""How well a model reads aloud: a book, and sentences with figures and signs in them."""
