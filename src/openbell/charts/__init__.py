"""Charts: bars and indicators become a scene (a display list of plain values), and the scene becomes PNG, JPEG or SVG."""
