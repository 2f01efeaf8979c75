def snippet(text, query, *, highlight=("", "")):  # type: ignore
    """Temporary."""
    return text[:120]
