"""Reads russet's HTML pages, and refuses what no page of its may have: what is loaded from elsewhere, scripts, tags that
are not closed."""
import html.parser

VOID = {"meta", "line", "circle", "rect", "polyline"}
ALLOWED = {"html", "head", "body", "title", "style", "h1", "h2", "p", "i", "span", "div", "figure", "figcaption", "svg",
           "text", "table", "tr", "th", "td"} | VOID


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open = []
        self.elements = []  # (tag, attributes, text)
        self.feed(text)
        self.close()
        if self.open:
            raise ValueError(f"not closed: {self.open}")
        style = "".join(content for tag, _, content in self.elements if tag == "style")
        for word in ("@import", "url(", "http:", "https:"):
            if word in style:
                raise ValueError(f"{word} in the style")
        if "prefers-color-scheme: dark" not in style or "color-scheme: light dark" not in style:
            raise ValueError("no dark colours")

    def handle_starttag(self, tag, attrs):
        if tag not in ALLOWED:
            raise ValueError(f"<{tag}>")
        for name, value in attrs:
            if name in ("src", "href", "xlink:href") or name.startswith("on") or "//" in (value or ""):
                raise ValueError(f"<{tag} {name}={value}>")
        self.elements.append([tag, dict(attrs), ""])
        if tag != "meta":
            self.open.append((tag, len(self.elements) - 1))

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open[-1][0] != tag:
            raise ValueError(f"</{tag}> in {self.open}")
        self.open.pop()

    def handle_data(self, data):
        if self.open:
            self.elements[self.open[-1][1]][2] += data

    def all(self, tag):
        return [(attributes, text) for name, attributes, text in self.elements if name == tag]

    def table(self):
        """The cells of all rows of all tables."""
        rows = []
        for tag, _, text in self.elements:
            if tag == "tr":
                rows.append([])
            elif tag in ("td", "th"):
                rows[-1].append(text)
        return rows
