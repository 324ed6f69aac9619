"""The application, in rooms of its own: data walks from settings to operations; `desk.py` composes them."""
