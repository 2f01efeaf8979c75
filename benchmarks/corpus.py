"""Seeded English-like messages, the same for a floor and for us."""

from __future__ import annotations

import itertools
import random
import string
from typing import Any

JsonMessage = dict[str, Any]

FUNCTION_WORDS = """
the of and to a in is it you that he was for on are with as I his they be at one have this from or had by hot but some
what there we can out other were all your when up use how said an each she which do their time if will way about many
then them would write like so these her long make thing see him two has look more day could go come did my no most
number who over know than call first people may down side been now find any new work part take get place made where
after back little only round man year came show every good me give our under very through just form much great think
"""

STEMS = """
accept account act add address adjust adopt advise affect agree allow amount analyse answer appear apply argue arrange
arrive ask assess assign assume attach attend balance bank base bear belong bind blend block board boil book borrow
branch break bridge bring broadcast budget build burn cache calculate cancel capture care carry catch cause center
chain chair change charge chart check choose claim class clean clear climb close coach collect color combine comment
commit compare compile complete concern connect consider contain contract control convert cook copy correct count
cover craft crash create cross cycle damage dance deal debate debug decide declare defend define delay deliver deny
depend deploy describe design detect develop direct discount discover discuss display divide document doubt draft draw
dream drive drop earn edit elect embed employ enable encode end engage enjoy enter equip escape estimate evaluate
examine exchange exist expand expect explain explore export express extend extract face fail farm fetch field figure
file fill filter finance fix flash float flow focus fold follow force format forward frame freeze function gather
generate govern grant graph group grow guard guess guide handle harvest heat help hike hire host hunt identify ignore
imagine import improve include increase index inform inspect install insure integrate invest invite involve iterate
join journal judge jump keep kick label land launch layer lead learn level library license lift limit link list listen
load locate lock log loop machine mail manage map march mark market match matter measure meet memory merge migrate
mix model monitor mount move multiply name network note notice observe offer open operate optimise order organise
origin pack page paint pair parse pass patch pattern pause perform permit phrase pick pilot plan plant play point
policy port post pour practice predict prefer prepare present press prevent price print process produce profile program
project promise propose protect prove provide publish pull push query question queue rank rate reach react read reason
recall receive recipe record recover reduce refer reflect refresh regard region release rely remain remember remove
render repair repeat replace reply report request require research reserve reset resolve respond rest restore result
retry return reveal review revise reward ride river road roll rotate route row rule sample save scale scan schedule
score screen script search season secure select send serve session set settle shape share shift ship signal sign sketch
skip sleep solve sort sound source space speak spell spend split spread stage stand start state station stay step stock
stop store story stream stretch strike study style submit succeed suggest supply support surface survey switch system
table talk target teach team test thank theory think thread throw ticket trace track trade train transfer transform
translate travel treat trigger trust try tune turn type update upgrade upload validate value vary verify version view
visit vote wait walk want warn wash watch wear weight welcome window winter wire wonder word world wrap yield zone
"""

SUFFIXES = ("", "s", "ed", "ing", "er", "ers", "able", "ment", "ness")

NAMES = """
Alice Amara Anders Beatriz Björn Chloé Daniel Elena Farid Grace Hannah Hiroshi Ingrid Ivan José Kofi Lars Lucía Marta
Mei Nadia Noah Olga Omar Paolo Priya Quentin Rafael Renée Sofia Tomas Uma Victor Wanda Xavier Yara Zoë Berlin Boston
Cairo Chicago Denver Dublin Geneva Helsinki Jakarta Kyoto Lagos Lima London Madrid Mumbai Nairobi Oslo Paris Prague
Québec Rome Seoul Sydney Tokyo Toronto Vienna Warsaw Zürich Python Rust Postgres SQLite Redis Kubernetes Linux
"""

VOCABULARY_SIZE = 5_000
WORDS_PER_TEXT = (34, 68)
REFERENCE_SHARE = 0.3
REFERENCES = range(10_000, 10_300)
ID_ALPHABET = string.ascii_letters + string.digits


def vocabulary(seed: int) -> list[str]:
    """The words of a corpus, most frequent first: function words, then a shuffle of inflections, names and numbers."""
    stems, function_words, names = STEMS.split(), FUNCTION_WORDS.split(), NAMES.split()
    inflected = [
        (stem[:-1] if stem.endswith("e") and suffix[:1] in ("a", "e", "i") else stem) + suffix
        for stem in stems
        for suffix in SUFFIXES
    ]
    numbers = [str(n) for n in range(1, 480)]
    chance = random.Random(seed)
    chance.shuffle(inflected)
    rest = inflected[: VOCABULARY_SIZE - len(function_words) - len(names) - len(numbers)] + names + numbers
    chance.shuffle(rest)
    return function_words + rest


class Corpus:
    """An endless source of messages of about 300 characters; two with one seed give the same messages."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._words = vocabulary(seed=1)
        self._weights = list(itertools.accumulate(1 / rank for rank in range(1, len(self._words) + 1)))

    def text(self) -> str:
        """Some sentences; three texts in ten name one of 300 reference numbers: rare words, one in 1,000 texts each."""
        chance = self._chance
        words = chance.choices(self._words, cum_weights=self._weights, k=chance.randint(*WORDS_PER_TEXT))
        if chance.random() < REFERENCE_SHARE:
            words.insert(chance.randrange(len(words)), f"(#{chance.choice(REFERENCES)})")
        sentences = []
        while words:
            length = chance.randint(5, 16)
            sentence, words = words[:length], words[length:]
            if len(sentence) > 9:
                sentence[4] += ","
            sentence[0] = sentence[0].capitalize()
            sentences.append(" ".join(sentence))
        return ". ".join(sentences) + "."

    def messages(self, count: int) -> list[JsonMessage]:
        """So many messages, user and assistant in turn, with random ids as clients make them."""
        return [
            {
                "id": "".join(self._chance.choices(ID_ALPHABET, k=16)),
                "role": "assistant" if number % 2 else "user",
                "parts": [{"type": "text", "text": self.text()}],
            }
            for number in range(count)
        ]


def text_of(message: JsonMessage) -> str:
    """What is indexed of a message: its text parts, joined by a newline."""
    return "\n".join(part["text"] for part in message["parts"] if part["type"] == "text")
