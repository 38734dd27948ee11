"""Numbers of cost as people read them."""


def money(amount: float, currency: str) -> str:
    """Whole above 100, cents above 1, three significant digits below."""
    if amount >= 100:
        return f"{amount:,.0f} {currency}"
    return f"{amount:.2f} {currency}" if amount >= 1 else f"{amount:.3g} {currency}"


def count(number: float) -> str:
    """Three significant digits, with a word for large numbers: 12.3 M, 4.56 billion."""
    for size, word in ((1e12, " trillion"), (1e9, " billion"), (1e6, " M")):
        if number >= size:
            return f"{number / size:.3g}{word}"
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def rate(tokens_per_s: float) -> str:
    """Tokens a second, three significant digits and no exponent."""
    return f"{tokens_per_s:,.0f} tokens/s" if tokens_per_s >= 100 else f"{tokens_per_s:.3g} tokens/s"
