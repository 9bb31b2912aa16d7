"""Rows of the table that parity.sh prints."""

WIDTH = 52


def header():
    print(f"{'':<{WIDTH}}{'found':>10}{'limit':>10}")


def row(what, found, limit, detail=""):
    """Prints a row; whether the limit holds."""
    holds = bool(found <= limit)
    print(f"{what:<{WIDTH}}{found:>10.1e}{limit:>10.0e}  {'ok' if holds else 'BROKEN':<6}  {detail}".rstrip(), flush=True)
    return holds


if __name__ == "__main__":
    header()
