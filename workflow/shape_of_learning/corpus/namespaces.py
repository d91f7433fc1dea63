"""Namespaces of a MediaWiki: those that every one has, and those that links to media and categories lead into."""

import re
from typing import NamedTuple

# What a MediaWiki installation has before anyone configures it; an export lists its own on top.
STANDARD_NAMESPACES = frozenset(
    name.casefold()
    for subject in ("User", "Project", "File", "Image", "MediaWiki", "Template", "Help", "Category")
    for name in (subject, f"{subject} talk")
) | {"media", "special", "talk"}
_MEDIA_FILE = re.compile(
    r"[^:]+:[^:]+\.(?:jpe?g|png|gif|svg|tiff?|webp|xcf|djvu|pdf|og[agv]|webm|opus|flac|wav|mp3|midi?)",
    re.IGNORECASE,
)


class InvisibleNamespaces(NamedTuple):
    """Case-folded names of namespaces, links into which are no words of a page.

    Attributes
    ----------
    media : frozenset of str
    categories : frozenset of str
    """

    media: frozenset[str] = frozenset({"file", "image", "media"})
    categories: frozenset[str] = frozenset({"category"})

    def has_link(self, target: str) -> bool:
        """Whether a link leads into them.

        An export in another language has names of media besides that of its header, as `Bild` in German: there the
        name of a file tells, after a prefix that is none of another site.
        """
        prefix, colon, _ = target.partition(":")
        if not colon or fold_case(prefix) in self.media | self.categories:
            return bool(colon)
        is_site = prefix.isascii() and prefix.islower()
        return self != IN_ENGLISH and not is_site and bool(_MEDIA_FILE.fullmatch(target))


IN_ENGLISH = InvisibleNamespaces()
# Numbers by which an export's header has its own names of them.
MEDIA_KEYS, CATEGORY_KEY = ("-2", "6"), "14"


def fold_case(namespace: str) -> str:
    """Write the name of a namespace as MediaWiki compares it."""
    return namespace.replace("_", " ").strip().casefold()
