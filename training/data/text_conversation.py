"""Sentences as people type them for a voice: talk, questions, exclamations, announcements, stories.

Clauses are put together from parts, so that one is hardly ever said twice. `text_templates` has
numbers, dates and money.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

from training.data import text_templates
from training.data.text_templates import ADJECTIVES, DAYS, LATER, PLACES, THINGS


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split("|")]


PARTS: dict[str, list[str]] = {
    "thing": THINGS,
    "place": PLACES,
    "adj": ADJECTIVES,
    "day": DAYS,
    "later": LATER,
    "who": _list(
        "I|you|we|they|he|she|my sister|my brother|the neighbors|everybody|nobody|your mother|"
        "our teacher|the children|the two of us|that man|my best friend|{name}|{name}|the boss"
    ),
    "did": _list(
        "went to {place}|came back from {place}|forgot about {event}|talked about {event}|"
        "had a wonderful time|could not sleep at all|waited for hours|lost the {thing}|"
        "fell in love with {place}|laughed all evening|never said a word about {event}|"
        "wanted to stay a little longer|got up very early|missed the last bus|"
        "missed {event}|called {name} back|found the {adj} {thing}|made dinner for everyone|"
        "was late for {event}|left the {thing} in the car|read the whole book in a day|"
        "thought it was a joke|cleaned the whole house|decided to move to {place}|"
        "took the wrong train|bought a {adj} {thing}|heard about {event} on the radio|"
        "played the guitar|walked home in the rain|changed the plan again|knew the answer|"
        "promised to be careful|looked for the {thing} everywhere|ran out of money|"
        "met {name} at {event}|learned to swim|started to cry|tried to be polite|"
        "asked for the bill|opened the window|kept the {thing}|turned off the light"
    ),
    "do": _list(
        "go to {place}|come with us|forget about {event}|talk about {event}|wait a minute|"
        "have a cup of tea|try it once more|take the {adj} {thing}|ask {name}|stay at home|"
        "get some sleep|open the window|turn the music down|help me with the {thing}|"
        "tell me the truth|think about it|call me back|leave early|bring the {thing}|"
        "find a better way|start again from the beginning|cook something for dinner|"
        "write to {name}|sit down for a moment|show me the {thing}|pay for the {thing}|"
        "remember {event}|believe it|see the difference|hear that noise|know {name}"
    ),
    "event": _list(
        "the party|the meeting|the wedding|your birthday|the game|the concert|the interview|"
        "that night|the exam|the accident|the weather|the holidays|the movie|dinner|the trip|"
        "the first day of school|the election|the news|the storm|the show|lunch|breakfast"
    ),
    "feel": _list(
        "so happy|really tired|a little nervous|very proud of you|sorry about {event}|hungry|"
        "completely lost|not sure about {event}|ready|surprised|angry|sick of {event}|fine|"
        "glad that you came|afraid of the dark|bored|late again|curious about the {thing}|"
        "excited about {event}|worried about {name}|busy right now|in love"
    ),
    "is": _list(
        "delicious|wonderful|terrible|not fair|very kind of you|all my fault|too expensive|"
        "exactly what I wanted|much easier than I thought|a beautiful {thing}|impossible|"
        "none of your business|the best day of my life|a long story|a good idea|nonsense|"
        "amazing|strange|over|far too loud|hard to explain|not what I meant|very good news"
    ),
    "oh": _list(
        "Oh|Well|Hey|Look|Listen|Honestly|Of course|Sure|Right|Okay|Yes|No|Actually|"
        "To be honest|By the way|Come on|Oh no|Oh dear|Wow|Thanks|Sorry|Anyway|Please|Good"
    ),
    "link": _list("and|but|so|because|although|while|until|before|after|and then|but then"),
    "said": _list("said|asked|whispered|answered|cried|replied|shouted|thought"),
    "manner": _list("quietly|with a smile|at last|again|softly|in surprise|without looking up"),
    "helper": _list("can|could|should|will|would|must|might"),
    "question": _list(
        "Where is {name}|Why did {who} {do}|What did {name} say about {event}|How are you|"
        "How was {event}|When does {event} start|Who wants to {do}|Can you {do}|"
        "Could you please {do}|Would you like to {do}|Did you {do}|Do you want to {do}|"
        "Are you {feel}|Is it true that {who} {did}|Why are you {feel}|What is that {thing} for|"
        "What happened to the {thing}|Have you ever been to {place}|What time is it|"
        "Shall we {do}|Don't you {do}|Isn't it {is}|What do you think|Does it hurt|"
        "How do you spell that|Who is there|Which {thing} is yours|What are you doing"
    ),
    "short": _list(
        "Hello|Hello there|Hi|Hi, {name}|Good morning|Good evening|Good night|Goodbye|See you|"
        "Yes|No|Maybe|Thank you|Thanks a lot|Sorry|Of course|Never mind|Not yet|Not at all|"
        "All right|I see|I know|Me too|Why not|Well done|Go on|Come in|Wait|Help|Look out|"
        "Hurry up|Here you are|That's it|No problem|Good luck|Happy birthday, {name}|Really|"
        "Nice to meet you|Welcome back|Take care|Excuse me|Be careful|Let's go|One moment, please|"
        "Testing, one, two, three|This is a test|How are you|I love you|See you on {day}"
    ),
    "public": _list(
        "Welcome to {place}|Thank you for calling, please hold the line|Your order has been sent|"
        "The next stop is {place}|The train to {place} is late|"
        "Please do not leave your {thing} behind|"
        "Please mind the gap between the train and the platform|"
        "You have a new message from {name}|"
        "This is the news at nine|Welcome back to the show, my name is {name}|"
        "In today's episode we talk about {event}|The doors will open on {day}|"
        "Turn left, then turn right at the lights|Your {thing} is ready|Press one for more|"
        "Ladies and gentlemen, please take your seats|We are sorry for the delay|"
        "Chapter one|The end|Today it will be cloudy, with some rain in the evening|"
        "Tomorrow will be sunny and warm|Please say your name after the tone|"
        "Your appointment is on {day}|Breakfast is served until ten|The library is now closed"
    ),
    "tale": _list(
        "Once upon a time there was a {adj} {thing} that nobody wanted|"
        "It was late, and the streets were empty|The old house stood at the edge of the forest|"
        "She opened the door, and there was {name} with a {adj} {thing}|"
        "Far away, beyond the hills, somebody was singing|Snow had fallen all night long|"
        "The captain looked at the map for a long time|For the first time in years, he smiled|"
        "A cold wind came down from the mountains|There was a knock at the door|"
        "The {thing} lay on the table, where {name} had left it|Nobody ever saw {name} again|"
        "In the morning the {thing} was gone|And so they went home, tired but happy"
    ),
    "plain": _list(
        "{who} {did}|{who} {did} {later}|I think {who} {did}|it is {is}|that was {is}|"
        "I am {feel}|we are {feel}|you {helper} {do}|we {helper} {do} on {day}|"
        "{who} and {name} {did}|I know that {who} {did}|there is a {thing} in {place}|"
        "I have never been to {place}|I would like to {do}|you don't have to {do}|"
        "it takes some time to {do}|I can't {do}|they say that {name} {did}|nothing is {is}"
    ),
    "order": _list(
        "Please {do}|{do}, {name}|Don't {do}|Let's {do}|Just {do}|{name}, please {do}|"
        "Let me {do}|Never {do} without me|Try to {do}"
    ),
}
SHAPES: tuple[tuple[int, str], ...] = (
    (8, "{plain}."),
    (8, "{plain}, {link} {plain}."),
    (4, "{oh}, {plain}."),
    (3, "{oh}, {plain}, {link} {plain}."),
    (2, "When {plain}, {plain}."),
    (2, "If {plain}, {plain}."),
    (2, "{plain}; {plain}."),
    (10, "{question}?"),
    (3, "{oh}, {question}?"),
    (2, "{question}, or {question}?"),
    (2, "{plain}. {question}?"),
    (2, "{question}? {plain}."),
    (5, "{order}."),
    (2, "{order}!"),
    (2, "{order}, {link} {plain}."),
    (3, "{plain}!"),
    (2, "{oh}! {plain}!"),
    (2, "How {adj}!"),
    (2, "That's {is}!"),
    (3, "{short}."),
    (3, "{short}!"),
    (2, "{short}?"),
    (2, "{short}. {plain}."),
    (2, "{short}! {question}?"),
    (3, '"{order}," {said} {name} {manner}.'),
    (2, '"{question}?" {name} asked.'),
    (2, '"{oh}," {said} {name}, "{plain}."'),
    (4, "{public}."),
    (2, "{public}. {public}."),
    (4, "{tale}."),
    (2, "{tale}. {tale}."),
)


def sentence(random: Random, proper: Sequence[str] = ()) -> str:
    """One to two sentences with capital first letters; `proper` are names that few people have."""

    def part(match: re.Match[str]) -> str:
        slot = match[1]
        return text_templates.name(random, proper) if slot == "name" else random.choice(PARTS[slot])

    shape = random.choices([shape for _, shape in SHAPES], [often for often, _ in SHAPES])[0]
    while "{" in shape:
        shape = re.sub(r"{([a-z]+)}", part, shape)
    return with_capitals(shape)


def with_capitals(text: str) -> str:
    """Every sentence begins with a capital, quoted ones too."""
    return re.sub(r'(^"?|[.!?] "?|, ")([a-z])', lambda match: match[1] + match[2].upper(), text)
