"""Tables of texts and labels as files: formats, reader, labels in cells, writer."""
