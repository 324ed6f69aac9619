"""Charts: a request becomes a scene (a display list of plain values); the scene becomes PNG, JPEG or SVG."""
