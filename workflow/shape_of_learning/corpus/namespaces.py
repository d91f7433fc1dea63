"""List the namespaces and language codes of MediaWiki, to recognise links to media, categories and languages."""

import re
from typing import NamedTuple

# Namespaces of an unconfigured MediaWiki; the header of an export lists further ones.
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
    """Case-folded names of namespaces whose links a reader of a page does not see.

    Attributes
    ----------
    media : frozenset of str
    categories : frozenset of str
    """

    media: frozenset[str] = frozenset({"file", "image", "media"})
    categories: frozenset[str] = frozenset({"category"})

    def contains_target(self, target: str) -> bool:
        """Return whether a link leads into one of the namespaces.

        Exports in other languages use names of media that their header does not list, such as `Bild` in German. In
        these exports the name of a media file tells such a link, unless its prefix is that of another site.
        """
        prefix, colon, _ = target.partition(":")
        if not colon or fold_case(prefix) in self.media | self.categories:
            return bool(colon)
        is_site = prefix.isascii() and prefix.islower()
        return self != IN_ENGLISH and not is_site and bool(_MEDIA_FILE.fullmatch(target))


IN_ENGLISH = InvisibleNamespaces()
# Numbers of the namespaces of media and categories in an export's header.
MEDIA_KEYS, CATEGORY_KEY = ("-2", "6"), "14"


def fold_case(namespace: str) -> str:
    """Normalise the name of a namespace as MediaWiki does for comparisons."""
    return namespace.replace("_", " ").strip().casefold()


# Codes of languages in MediaWiki, in later Wikipedias, and in links of 2006. MediaWiki shows such links beside the
# page. Other prefixes, as in [[doi:...|words]], lead to other sites, and the words of the link stay.
_CODES = """
    aa ab ace ady ady-cyrl aeb aeb-arab aeb-latn af ak aln als am an ang anp ar arc arn arq ary arz
    as ase ast atj av avk awa ay az azb ba ban bar bat-smg bbc bbc-latn bcc bcl be be-tarask
    be-x-old bg bgn bh bho bi bjn bm bn bo bpy bqi br brh bs bto bug bxr ca cbk-zam cdo ce ceb ch
    cho chr chy ckb co cps cr crh crh-cyrl crh-latn cs csb cu cv cy da de de-at de-ch de-formal diq
    dsb dtp dty dv dz ee egl el eml en en-ca en-gb en-x-piglatin eo es et eu ext fa ff fi fit
    fiu-vro fj fo fr frc frp frr fur fy ga gag gan gan-hans gan-hant gd gl glk gn gom gom-deva
    gom-latn gor got grc gsw gu gv ha hak haw he hi hif hif-latn hil ho hr hrx hsb ht hu hy hz ia id
    ie ig ii ik ike-cans ike-latn ilo inh io is it iu ja jam jbo jut jv ka kaa kab kbd kbd-cyrl kg
    khw ki kiu kj kk kk-arab kk-cn kk-cyrl kk-kz kk-latn kk-tr kl km kn ko ko-kp koi kr krc kri krj
    krl ks ks-arab ks-deva ksh ku ku-arab ku-latn kv kw ky la lad lb lbe lez lfn lg li lij liv lki
    lmo ln lo loz lrc lt ltg lus luz lv lzh lzz mai map-bms mdf mg mh mhr mi min mk ml mn mo mr mrj
    ms mt mus mwl my myv mzn na nah nan nap nb nds nds-nl ne new ng niu nl nl-informal nn no nov nrm
    nso nv ny oc olo om or os pa pag pam pap pcd pdc pdt pfl pi pih pl pms pnb pnt prg ps pt pt-br
    qu qug rgn rif rm rmy rn ro roa-rup roa-tara ru rue rup ruq ruq-cyrl ruq-latn rw sa sah sat sc
    scn sco sd sdc sdh se sei ses sg sgs sh shi shi-latn shi-tfng shn si simple sk sl sli sm sma sn
    so sq sr sr-ec sr-el srn ss st stq su sv sw szl ta tcy te tet tg tg-cyrl tg-latn th ti tk tl tly
    tn to tokipona tpi tr tru ts tt tt-cyrl tt-latn tum tw ty tyv tzm udm ug ug-arab ug-latn uk ur
    uz uz-cyrl uz-latn ve vec vep vi vls vmf vo vot vro wa war wo wuu xal xh xmf yi yo yue za zea zh
    zh-classical zh-cn zh-hans zh-hant zh-hk zh-min-nan zh-mo zh-my zh-sg zh-tw zh-yue zu

    alt ami ann bdr bew blk btm dag dga din fat fon gcr gpe guc gur guw hyw iba igl kbp kcg kge knc
    kus lld mad mni mnw mos nia nqo nr nup pcm pwn rsk skr smn sms szy tay tdd tig trv zgh

    closed-zh-tw cz dk epo jp minnan nomcom ru-sib tlh tp zh-cfr
"""
LANGUAGE_CODES = frozenset(_CODES.split())
