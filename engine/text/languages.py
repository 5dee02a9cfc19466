"""Which language a text is written in, where it is plain: by the small words that only one has.

Told to people before they hear a model read a language that it does not speak. Rather silent than
wrong: names, titles and quoted words are in many texts. Knows no models.
"""

from __future__ import annotations

import re
from collections import Counter
from unicodedata import normalize

LEAST_WORDS = 4  # of a language, below which nothing is said
LEAST_SHARE = 0.2  # of a text's words
_WORD = re.compile(r"[^\W\d_]+")
_LONGEST = 4000  # characters that are looked at

# Words that English does not have, and mostly no other of these languages.
_WORDS = {
    "german": "der das und ist nicht ein eine einen ich wir ihr sie mit auf für von dem den des im "
    "zu auch wie aber wenn noch nach bei wird sind war habe hat über durch oder dass kann",
    "french": "le les des une est et dans pour que qui sur pas avec ce cette vous nous je il elle "
    "mais ont sont du au aux leur plus ne était être ces ou où",
    "spanish": "el los las una es y en por con para como pero más del al lo se su sus yo muy "
    "está este esta son fue ha había también hay cuando",
    "italian": "il gli una è di che per con non sono della del nel nella anche come più ma alla "
    "dei delle questo questa ha era sul quando dove",
    "portuguese": "o os uma é em não com para que do da dos das no na ao mais mas seu sua foi "
    "são está também você ele ela por quando isso",
    "dutch": "het een en de dat niet zijn voor met aan ook maar bij nog wordt naar heeft wij "
    "ik je ze er te uit deze dit zij werd door om als",
    "polish": "się nie jest na że jak ale od dla czy są już tylko był była było przez może więc "
    "tego tym tej jestem bardzo gdy kiedy który która które co mnie ze po dzień dzisiaj",
    "czech": "se že není jsem jsou na je ale jako který která které pro při také když už jen být "
    "byl byla bylo nebo až co mě dnes velmi tak od jak si jsme tady",
    "swedish": "och att det som är av på med inte har jag om ett var sig från så kan när nu mycket "
    "också vi ska till eller bara efter hon mig dig hur du",
    "danish": "og det som er af på med ikke har jeg om et var sig fra så kan når nu meget også vi "
    "skal til eller kun efter hun mig dig hvordan du blev være nogle hvad",
    "norwegian": "og det som er av på med ikke har jeg om et var seg fra så kan når nå mye også vi "
    "skal til eller bare etter hun meg deg hvordan du ble være noen hva",
    "vietnamese": "và là của không có được cho một những các người này với đã để ở tôi chúng bạn "
    "đó nhưng cũng như thì rất hôm nay trong khi nào",
    "turkish": "ve bir bu için çok daha olarak gibi kadar değil sonra ile biz ben mı ama şey bugün "
    "olan oldu",
    "indonesian": "yang dan di ini itu dengan untuk tidak dari dalam akan pada adalah saya kami "
    "kita anda mereka juga ke bisa ada sudah atau karena seperti hari oleh sangat",
    "romanian": "și în este nu că sunt din pentru cu ce dar fi să fost pe care foarte sau acest "
    "această astăzi noi",
    "hungarian": "és az egy nem hogy ez csak már még mint volt azt én ő nagyon itt ott vagy kell "
    "lesz vannak minden",
    "finnish": "ja ei se että hän oli ovat mutta kun niin mitä minä sinä joka myös kuin sen olen "
    "olet tämä tänään vain jos nyt voi kanssa sitten",
}
_ENGLISH = (
    "the and is are was were of to in that it for with as this be have has not on at by from but "
    "they you we he she his her their which what when there will would can an or if so"
)
WORDS = {language: frozenset(words.split()) for language, words in _WORDS.items()}
ENGLISH = "english"
_SPOKEN_IN: dict[str, list[str]] = {}  # the languages of each word
for _language, _words in {**WORDS, ENGLISH: frozenset(_ENGLISH.split())}.items():
    for _word in _words:
        _SPOKEN_IN.setdefault(_word, []).append(_language)


def written_in(text: str) -> str | None:
    """A language that is not English, if the text is plainly written in it."""
    words = _WORD.findall(normalize("NFC", text[:_LONGEST]).lower())
    counts = Counter(language for word in words for language in _SPOKEN_IN.get(word, ()))
    english = counts.pop(ENGLISH, 0)
    (best, most), (_, second) = [*counts.most_common(2), ("", 0), ("", 0)][:2]
    enough = most >= max(LEAST_WORDS, LEAST_SHARE * len(words))
    return best if enough and most > 1.2 * second and most > 2 * english else None
