"""What strangers wrote to try the normaliser, and what a reader says for it."""

# ruff: noqa: E501

from __future__ import annotations

import pytest

from engine.text.spoken_form import SpokenForm, spoken_form


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ('The yacht sold for €2,5 Mio in May; 3,5 kg cost 12,99 €, 1,5 % more.', 'The yacht sold for two point five million euros in May; three point five kilograms cost twelve point nine nine euros, one point five percent more.'),
        ('She earns 45.000 € a year, he €38.500; fuel is €1.459 per litre.', 'She earns forty-five thousand euros a year, he thirty-eight thousand five hundred euros; fuel is one point four five nine euros per litre.'),
        ('It has 1.234.567 people, 12 345 678 km of it and 45 000 members.', 'It has one million two hundred and thirty-four thousand five hundred and sixty-seven people, twelve million three hundred and forty-five thousand six hundred and seventy-eight kilometers of it and forty-five thousand members.'),
        ('A 50¢ stamp, a $0.05 bag fee, parking at 5€/h, 99c each.', 'A fifty cent stamp, a five cent bag fee, parking at five euros per hour, ninety-nine cents each.'),
        ('It pays $20k–$30k a year; 50 SEK and 100 NZD.', 'It pays twenty to thirty thousand dollars a year; fifty Swedish kronor and one hundred New Zealand dollars.'),
        ('A 2TB SSD, a 65W USB charger and the 100m race on 35 mm film.', 'A two terabyte ess-ess-dee, a sixty-five watt you-ess-bee charger and the one hundred meter race on thirty-five millimeter film.'),
        ('A 90-min. talk, a box of 30x20x15 cm at 20 psi, 300 dpi and 1 atm.', 'A ninety minute talk, a box of thirty by twenty by fifteen centimeters at twenty pee-ess-eye, three hundred dee-pee-eye and one atmosphere.'),
        ('Solve 3x² - 5x + 2 = 0.', 'Solve three ex squared minus five ex plus two equals zero.'),
        ('E = mc² and y = mx + b.', 'Ee equals em-see squared and why equals em-ex plus bee.'),
        ('H1 2024 was weak, FY24 and FY 2023/24 were not.', 'Aitch one twenty twenty-four was weak, fiscal year twenty-four and fiscal year twenty twenty-three twenty-four were not.'),
        ('1066 and all that. 2024 was good; pre-1945 laws.', 'Ten sixty-six and all that. Twenty twenty-four was good; pre-nineteen forty-five laws.'),
        ('A 3/4-ton truck and a 350-page book; 24-7.', 'A three quarter-ton truck and a three hundred and fifty page book; twenty-four seven.'),
        ('My GPA is 3.9/4.0; a Phase 1/2 trial ran on Windows 10/11.', 'My gee-pee-eigh is three point nine out of four point zero; a phase one two trial ran on Windows ten eleven.'),
        ("Earth's mass is 5.97 × 10^24 kg; the price per kWh.", "Earth's mass is five point nine seven times ten to the power of twenty-four kilograms; the price per kilowatt hour."),
        ('It runs 30 Sept. – 2 Oct., then May 5 – June 3, Monday-Friday.', 'It runs the thirtieth of September to the second of October, then May fifth to June third, Monday to Friday.'),
        ('At 9h15 or 14h30 for 1h30; it took 3\'45" or 3:45 min until 12:00 noon.', 'At nine fifteen or fourteen thirty for one hour thirty minutes; it took three minutes forty-five seconds or three forty-five minutes until twelve noon.'),
        ('Meet at 5 p.m. Bring water at 5 p.m. Eastern time.', 'Meet at five pee-em. Bring water at five pee-em Eastern time.'),
        ('#100DaysOfCode and #BLM in IMG_2034.JPG.', 'Hashtag one hundred days of code and hashtag bee-ell-em in img underscore two zero three four dot jay-pee-gee.'),
        ('IBAN: DE89 3704 0044 0532 0130 00.', 'Iban: dee ee eight nine, three seven zero four, zero zero four four, zero five three two, zero one three zero, zero zero.'),
        ('Apt. #7, Serial no. X7-4490, Order #A1B2C3.', 'Apartment number seven, Serial number ex seven four four nine zero, Order number eigh one bee two see three.'),
        ('Call 415 555-2671 x204.', 'Call four one five, five five five, two six seven one extension two zero four.'),
        ('The kings I, II and III; Chapters I–III; Parts II and IV; a II.', 'The kings one, two and three; Chapters one to three; Parts two and four; a two.'),
        ('It was the Civil War I think. Henry VIII and I met. A size XL.', 'It was the civil war I think. Henry the eighth and I met. A size ex-ell.'),
        ("Mind your Ps and Qs; straight As; cross the t's, dot the i's.", 'Mind your pees and cues; straight eighs; cross the tees, dot the eyes.'),
        ('Appendix A, then A, B and C; take the A train to W 4th St.', 'Appendix eigh, then eigh, bee and see; take the eigh train to West fourth Street.'),
        ('JOHN WENT TO NYC.', 'John went to en-why-see.'),
        ('WW2 for NYSE fans: Na+, Fe2+ and the DoD.', 'World War two for en-why-ess-ee fans: en-eigh plus, eff-ee two plus and the dee-oh-dee.'),
        ('O-O and O-O-O, blood type AB-.', 'Castles and castles queenside, blood type eigh-bee minus.'),
        ('I ❤️ it.', 'I love it.'),
        ('He said so[1] and left.[2, 3] Then back.', 'He said so and left. Then back.'),
        ('Act V, scene i', 'Act five, scene one'),
        ('A line<br>another; &pound;20 &copy; 2020.', 'A line another; twenty pounds copyright twenty twenty.'),
        ('# of people', 'Number of people'),
        ('From 3pm GMT / 10am EST s/he slept.', 'From three pee-em gee-em-tee, ten eigh-em ee-ess-tee she or he slept.'),
        ('It grew 0.5 pp. It fell 2% in growth p.a.', 'It grew zero point five percentage points. It fell two percent in growth per annum.'),
        ('foo_bar() with `--verbose` or -v; 18k gold.', 'Foo bar with dash dash verbose or dash vee; eighteen karat gold.'),
        ('a) first b) second', 'Eigh, first bee, second'),
        ('Rihanna ft. Drake, attn: Bob, w.r.t. the pop. of Rome.', 'Rihanna featuring Drake, attention: Bob, with respect to the population of Rome.'),
        ('Mr and Mrs Smith. Turn left on Oak St. Then go.', 'Mister and Missus Smith. Turn left on Oak Street. Then go.'),
        ('Version 3.11; Lat 51.5, Lon -0.12; a 1 : 3 ratio.', 'Version three point eleven; Latitude fifty-one point five, Longitude minus zero point one two; a one to three ratio.'),
        ('In A.D. 1066, c. £50, see Jones 2003a.', 'In eigh dee ten sixty-six, circa fifty pounds, see Jones two thousand and three, eigh.'),
        ('john@example.com', 'John at example dot com'),
        ('See ticket (#HR-1234) of 05/2020 and 2024-05, not 2010-12.', 'See ticket, number aitch-ar one two three four, of May twenty twenty and May twenty twenty-four, not twenty ten to twelve.'),
        ('The 1999/2000 season; 20 000 leagues; 1.5 m people.', 'The nineteen ninety-nine two thousand season; twenty thousand leagues; one point five million people.'),
        ('A sheet of 8½ x 11 or 8 1/2 x 11, the gap is 3/4".', 'A sheet of eight and a half by eleven or eight and a half by eleven, the gap is three quarters of an inch.'),
        ('At 100° C or 100 degrees F, a high of 72F, 4°C–8°C.', 'At one hundred degrees Celsius or one hundred degrees Fahrenheit, a high of seventy-two degrees Fahrenheit, four degrees Celsius to eight degrees Celsius.'),
        ('At 60 m.p.h. he went 5 nmi at 20 kn.', 'At sixty miles per hour he went five nautical miles at twenty knots.'),
        ("Copyright (c) 2019 Bob; (c) 2020; Theodore Ts'o.", "Copyright twenty nineteen Bob; copyright twenty twenty; Theodore Ts'o."),
        ('It takes (about 15 s) in all; (b) the rest.', 'It takes, about fifteen seconds, in all; bee, the rest.'),
        ('The `wait` of `15s` is long.', 'The wait of fifteen seconds is long.'),
        ('A Ford F-150, an Airbus A380 and flight MH370.', 'A ford eff one fifty, an airbus eigh three eighty and flight em-aitch three seven zero.'),
        ('She ran the 10K in 45:10 past 2x4s and 2x6s.', 'She ran the ten kay in forty-five ten past two by fours and two by sixes.'),
        ("No. 10's response; fax no.: 555 0123.", "Number ten's response; fax number: five five five, zero one two three."),
        ('RE: a 7Ah battery', 'Re: a seven amp hour battery'),
        ('Ring +33 (0)1 42 68 53 00.', 'Ring plus three three, one, four two, six eight, five three, zero zero.'),
        ('See http://localhost:8080/api/users or file:///home/me/a.pdf.', 'See localhost colon eight zero eight zero slash eigh-pee-eye slash users or slash home slash me slash eigh dot pee-dee-eff.'),
        ('Edit main.cpp, HelloWorld.java and run.sh.', 'Edit main dot see-pee-pee, hello world dot java and run dot ess-aitch.'),
        ("COVID-19 and SARS-CoV-2: UNESCO met NASA's FIFA.", "Coevid nineteen and sars co vee two: Yoonesco met Nassa's Feefa."),
        ('The NASDAQ fell; send photo.jpeg as a JPEG or the JPEGs.', 'The nazdack fell; send photo dot jay-pee-ee-gee as a jay-pegg or the jay-peggs.'),
        ('Married on 1 May 2024.', 'Married on the first of May, twenty twenty-four.'),
        ('Take option b, if x is 5 and y(n) is 3.', 'Take option bee, if ex is five and why, en, is three.'),
        ('The CEO of BMW left the EU for UCLA, the MP3 for B2B.', 'The see-ee-oh of bee-em-double-you left the ee-you for you-see-ell-eigh, the em-pee three for bee two bee.'),
        ('The word(s) at 300 dpi.', 'The words at three hundred dee-pee-eye.'),
        ('WE MEET ON MONDAY IN JULY, see you friday.', 'We meet on Monday in July, see you Friday.'),
        ("What's 7 x 8? The 5 W's w/in 2 hrs: mph, €3.50/100g and $0.10/min.", "What's seven times eight? The five double yous within two hours: miles per hour, three euros and fifty cents per one hundred grams and ten cents per minute."),
        ('Her I.D. no. is 7; 1 000.', 'Her eye-dee number is seven; one thousand.'),
        ('He said it s fine, I don t know, we d go; option d, and that s it.', 'He said it s fine, I don t know, we d go; option dee, and that s it.'),
        ('The ``keys`` and `None`s are kept.', 'The keys and Nones are kept.'),
        ('It is over. -W. Smith was tired -I was not. She ran -a girl -down; use -v.', 'It is over. Double you Smith was tired I was not. She ran a girl down; use dash vee.'),
        ('Ortega y Gasset of Sao Tome e Principe took John s book and the dog s tail.', 'Ortega y Gasset of Sao Tome e Principe took John s book and the dog s tail.'),
        ('Of august lineage in AUGUST.', 'Of august lineage in august.'),
        ("His ex. 3 months later it's def. 10 of them (ex. 2).", "His ex. Three months later it's def. Ten of them, example two."),
        ('Then ax[1].set is one.[1]', 'Then ax, one.set is one.'),
        ('At 9 a.m. Mary left. It shuts at 5 p.m. Bring food.', 'At nine eigh-em Mary left. It shuts at five pee-em. Bring food.'),
        ('Yoko Ono sang. £200 ono, or £50 ONO.', 'Yoko Ono sang. Two hundred pounds or nearest offer, or fifty pounds or nearest offer.'),
        ('The Dr. said so. See the Dr. now; my Dr, who is old, left Maple Dr. at noon.', 'The doctor said so. See the doctor now; my doctor, who is old, left Maple Drive at noon.'),
    ],
)  # fmt: skip
def test_what_strangers_wrote_is_said(written: str, spoken: str) -> None:
    assert spoken_form(written) == spoken
    form = SpokenForm()
    pieces = [form.append(mark) for mark in written]
    assert "".join([*pieces, form.close()]).strip() == spoken
