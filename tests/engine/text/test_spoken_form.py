"""What is said for what is written, whole and in pieces."""

# ruff: noqa: E501

from __future__ import annotations

import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.text.spoken_form import SpokenForm, foreign_alphabets, spoken_form

SAID = re.compile(r"[A-Za-z ,.;:?!'-]*")
PARTS = (
    "the ", "train ", "£", "20", " ", "3", ".5", "Dr. ", "St. ", "Smith ", "FBI ", "-", "–", "km/h ",
    "°C", "1/2 ", "VIII", "Henry ", "a.m. ", "7:45", "pm", "\n", "http://a.b/c?d=1 ", "me@x.com ",
    "é", "😀", "你好", "(", ")", "“", "HELLO ", "etc. ", "World War II ", "+44 20 7946 0958", ", ",
    "no. ", "p.m. Then ", "a.m.–", "/etc/", "1 000 000", "Capt. ", "in March ", "XIX century ", "No. 10", "in ", "7.30–", "11am", "N of ", "J10–J12", "/day", "ff. ", "&amp;", ":-) ", "pop. 3m ", "1,00,000", "c. ", "OK ", "1999", "'90s ", "it's ", "etc", ".", "! ", "at ", "8.30", "²", "⁻", "₂", ">=", "3/4", '"', "Jan", "-Mar ", "° ", "′", "~~", "$5/copy ", "N. ", "London", " fl. ", "T07:05Z", "2024-02-01", "1939/40 ", "W-what", "scene ", "iv", "XII. ", "10-", "200C/", "1½", "§§ ", "£3 10s. ", "NaCl ", "f(2)", "1/250 s", "-$4", "25/12 ", "12'6\" x 10'", "idk ", "est. ", "C#m7 ", "Eb ", "major ", "E. ", "coli ", "i < n ", "x²/", "lmk ", "rn", "c u ", "b late ", "temp. ", "-5C ", "fl oz ", "2-3x ", "a 404 ", "XIV: ",  "00:1A:2B:3C:4D:5E ", "doi:10.1/x ", "$3tn ", "debt ", "b. ", "√", "5!", " = ", "3:2:1 ", "6d. ", "C.I.A ",
)  # fmt: skip
WRITTEN = st.lists(st.sampled_from(PARTS), max_size=24).map("".join)
SOON = 2.0  # seconds of processor time for 10,000 characters


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("The C#m7, F#7, Bmaj7 and Dm7b5 chords, D/F#, Em7; play C–G–Am–F in Eb major, 3/4 time or in 6/8.", 'The see sharp minor seven, eff sharp seven, bee major seven and dee minor seven flat five chords, dee over eff sharp, ee minor seven; play see, gee, eigh minor, eff in ee flat major, three four time or in six eight.'),
        ('Idi Amin, the AM4 socket, C#, Db2 and the C5 Corvette.', 'Idi Amin, the eigh-em four socket, see sharp, Db two and the see five Corvette.'),
        ('Its MAC is 00:1A:2B:3C:4D:5E; see doi:10.1038/s41586-020.', 'Its em-eigh-see is zero zero, one eigh, two bee, three see, four dee, five ee; see dee-oh-eye one zero point one zero three eight slash ess four one five eight six dash zero two zero.'),
        ('E. coli, S. aureus and a T. rex, but plan B. then C.', 'Ee coli, ess aureus and a tee rex, but plan bee. Then see.'),
        ("It returns a 404 if i < n; p<0.05, std::vector<int>, x²/2, 2^n, a = b/c on localhost:8080 in Python 3.11.", 'It returns a four oh four if i less than en; pee less than zero point zero five, std vector of int, ex squared over two, two to the power of en, a equals bee over see on localhost port eight zero eight zero in Python three point eleven.'),
        ('He wrote <b>5</b> or <i>x</i> words, 5 m/s.', 'He wrote five or ex words, five meters per second.'),
        ('The $3.5tn debt, a $1MM bet, a £1.2bn deal and the $20m raised; $(1.2)m, £900 pcm.', 'The three point five trillion dollar debt, a one million dollar bet, a one point two billion pound deal and the twenty million dollars raised; minus one point two million dollars, nine hundred pounds per calendar month.'),
        ('HCl and 2NaOH, SO₄²⁻, sin²θ, 1:25,000, 1.2 g/cm3, 9.81 m/s2, 40 Nm.', 'Aitch-see-ell and two en-eigh-oh-aitch, ess-oh four two minus, sine squared theta, one to twenty-five thousand, one point two grams per cubic centimeter, nine point eight one meters per second squared, forty newton meters.'),
        ("The siege (717-718), lines 757-760; a 737-700, a 707-320 and a 747-8.", "The siege, seven hundred and seventeen to seven hundred and eighteen, lines seven hundred and fifty-seven to seven hundred and sixty; a seven three seven seven hundred, a seven zero seven three hundred and twenty and a seven four seven eight."),
        ("Sockets come in 3/8, 1/2 and 3/4 inch. It is in 7/8, then in 5/4.", "Sockets come in three eighths, half an and three quarters inch. It is in seven eight, then in five four."),
        ("Default = N/A. In the US 60 W bulbs are banned; take US 50 W, not the US 101 N.", 'Default equals not applicable. In the you-ess sixty watt bulbs are banned; take you-ess fifty west, not the you-ess one hundred and one north.'),
        ('A 27in monitor, 16 fl oz, 3½ oz, 2-3x, 10-15k; Q1\'24, S$20, 90210-1234, a 737-800.', 'A twenty-seven inch monitor, sixteen fluid ounces, three and a half ounces, two to three times, ten to fifteen thousand; cue one twenty-four, twenty Singapore dollars, nine zero two one zero, one two three four, a seven three seven eight hundred.'),
        ('The temp. fell to -5C, 30C outside, 5°C–10°C; at 0500, 9am-noon, 7:30p, 12:30 a man came; Luke 3:16a.', 'The temperature fell to minus five degrees Celsius, thirty degrees Celsius outside, five degrees Celsius to ten degrees Celsius; at oh five hundred hours, nine eigh-em to noon, seven thirty pee-em, twelve thirty a man came; Luke three sixteen eigh.'),
        ('On W. 42nd St. or Penn Ave. NW, head NW on the A1(M); the No 1 seed, 60s music.', 'On West forty-second Street or Penn Avenue north-west, head north-west on the eigh one em; the number one seed, sixties music.'),
        ('lmk asap, np. c u, dont b late! ur m8 Ty Cobb took the M8. I <3 you', "Let me know asap, no problem. See you, dont be late! Your mate Ty Cobb took the em eight. I love you"),
        ("My BP is 120/80 (ADHD): V1-V4, Refs. [1], Eq. (3), 2ab, 2019a, b, int'l gov't, S01 E03, 4-Apr-2021.", 'My bee-pee is one hundred and twenty over eighty, eigh-dee-aitch-dee: vee one to vee four, references one, equation three, two eigh-bee, twenty nineteen, eigh, bee, international government, season one episode three, the fourth of April, twenty twenty-one.'),
        ("It always grows. XVIII: It is easy. VI. As speed rises. He got XX. Why'n'tcha try drum'n'bass?", "It always grows. Eighteen: it is easy. Six. As speed rises. He got ex-ex. Why'n'tcha try drum and bass?"),
        ('It lies 12km SW of Athens, 2 mi. N on US-101, open M–F; the BoE gave an A or A*, LMK; vortex 30 s, 5 min/side, in 5/4.', 'It lies twelve kilometers south-west of Athens, two miles north on you-ess one zero one, open Monday to Friday; the bee-oh-ee gave an eigh or eigh star, let me know; vortex thirty seconds, five minutes per side, in five four.'),
        ('Breakfast is served 7–10am (7.30–11am on Sundays).', 'Breakfast is served seven to ten eigh-em, seven thirty to eleven eigh-em on Sundays.'),
        ('Take 2 tablets every 4-6 hrs, max. 8/day; open 365 days/yr.', 'Take two tablets every four to six hours, maximum eight per day; open three hundred and sixty-five days per year.'),
        ('The B&B is on the A34, 2½ miles N of Oxford.', 'The bee and bee is on the eigh thirty-four, two and a half miles north of Oxford.'),
        ('Q: How many? A: About 30–40.', 'Cue: how many? Eigh: About thirty to forty.'),
        ('The M25 is closed J10–J12; see pp. 34ff. and Ch. 7, esp. the map.', 'The em twenty-five is closed jay ten to jay twelve; see pages thirty-four and following and chapter seven, especially the map.'),
        ('Dissolve 5 g NaCl in H2SO4; PCs read 1/250 s of 3.2 GiB.', 'Dissolve five grams en-eigh-see-ell in aitch two ess-oh four; pee-sees read one two hundred and fiftieth of a second of three point two gibibytes.'),
        ('If f(x) = 3x, then 5! = 120 and √16 = 4, mixed 3:2:1.', 'If eff of ex equals three ex, then five factorial equals one hundred and twenty and square root of sixteen equals four, mixed three to two to one.'),
        ('-$40, $3.10 est., ₹5 lakh, R$ 10, 50,- €, €1,50, a 60/40 split.', 'Minus forty dollars, three dollars and ten cents estimated, five lakh rupees, ten reais, fifty euros, one euro and fifty cents, a sixty forty split.'),
        ('Due on 25/12 or Fri 6/7; step 1/3 for a 4 yo at 12\'6" x 10\'.', 'Due on the twenty-fifth of December or Friday, June seventh; step one of three for a four year-old at twelve foot six by ten feet.'),
        ('He was b. 3 Feb. 1809, in the C19th; I-95 N and Rte. 9W, wind NW.', 'He was born the third of February, eighteen oh nine, in the nineteenth century; eye ninety-five north and route nine double you, wind north-west.'),
        ('IDK tbh; the RAF and YMCA grew 5% YoY, Sc. ii, ll. 45–52.', 'Eye-dee-kay tee-bee-aitch; the ar-eigh-eff and why-em-see-eigh grew five percent year on year, Scene two, lines forty-five to fifty-two.'),
        ('c u l8r m8, how r u? 500 ppl; thx b4 2moro; Rm 101, exp. 09/27, cat. 4.', 'See you later mate, how are you? Five hundred people; thanks before tomorrow; room one zero one, expires September twenty twenty-seven, category four.'),
        ('I fed the cat. 3 hours later, error 0x1F; 3 + 4 × 2 = 11, 1/3 + 1/6 = 1/2.', 'I fed the cat. Three hours later, error zero ex one eff; three plus four times two equals eleven, one third plus one sixth equals one half.'),
        ('1 lb. 4 oz. for the 49ers at a 3.2:1 ratio; from A <a.k@mail.com>.', 'One pound four ounces for the forty-nineers at a three point two to one ratio; from eigh eigh dot kay at mail dot com.'),
        ("<doogie> YOW! <b>Mix</b> 1 and 1/2 cups for a 6' table, <br/>fig 3.", 'Doogie, yow! Mix one and a half cups for a six foot table, figure three.'),
        ("As little as 0.000001 p.p.m.; call 01.42.68.53.00.", 'As little as zero point zero zero zero zero zero one pee-pee-em; call zero one, four two, six eight, five three, zero zero.'),
        ('A 65" TV, 10–12-year-olds, a 10k run and 5/8ths.', 'A sixty-five inch tee-vee, ten to twelve year-olds, a ten kay run and five eighths.'),
        ('Earth is 93 million miles (150m km) from the Sun.', 'Earth is ninety-three million miles, one hundred and fifty million kilometers, from the sun.'),
        ('Pop. 8.9m (2021 census), temp. 25–30°C.', 'Population eight point nine million, twenty twenty-one census, temperature twenty-five to thirty degrees Celsius.'),
        ('I said xD to you.', 'I said to you.'),
        ('Three doz. eggs @ $3 ea. &amp; salt :-)', 'Three dozen eggs at three dollars each and salt'),
        ('Ave. Foch, 5th Ave., Blvd. St. Michel.', 'Avenue Foch, fifth Avenue, Boulevard Saint Michel.'),
        ('The 3rd of May was a Sunday; 00:00 on May 4.', 'The third of May was a Sunday; midnight on May fourth.'),
        ('Rs. 250 or ₹1,00,000; 180°C / 350°F.', 'Two hundred and fifty rupees or one hundred thousand rupees; one hundred and eighty degrees Celsius, three hundred and fifty degrees Fahrenheit.'),
        ('He lives nr. Paris (b. 1912, d. 1990), c. 1850. OK?', 'He lives near Paris, born nineteen twelve, died nineteen ninety, circa eighteen fifty. Okay?'),
        ('Flight BA2490; Prof. K. Müller, D.Phil.', 'Flight bee-eigh two four nine zero; Professor kay Muller, dee fill'),
        ("It cost £3.5m.", "It cost three point five million pounds."),
        ('KING GEORGE VI WAS CROWNED.', 'King George the sixth was crowned.'),
        ('MR. AND MRS. SMITH LIVE THERE.', 'Mister and Missus smith live there.'),
        ("From 1990 to '95 it rose.", 'From nineteen ninety to ninety-five it rose.'),
        ('Add 3/4 tsp. of salt.', 'Add three quarters teaspoon of salt.'),
        ('She is 9 st. 3 lb.', 'She is nine stone three pounds.'),
        ('A room of 3m x 4m.', 'A room of three meters by four meters.'),
        ('On 4/5 we met; on 4/5 of days it rains.', 'On April fifth we met; on four fifths of days it rains.'),
        ('RSVP by 12/15, cut by 1/2.', 'Ar-ess-vee-pee by December fifteenth, cut by one half.'),
        ('1e-5 or 6.02×10^23', 'One times ten to the power of minus five or six point zero two times ten to the power of twenty-three'),
        ('x = 3y - 1', 'Ex equals three why minus one'),
        ('Use C#, .NET and H₂O.', 'Use see sharp, dot net and aitch two oh.'),
        ('3bn years for M&Ms', 'Three billion years for em and ems'),
        ('At 0630 hrs, for kids, under-16s.', 'At oh six thirty hours, for kids, under-sixteens.'),
        ('He said "be there at 5"; a 5" nail.', 'He said be there at five; a five inch nail.'),
        ('$9.99/mo., or $99/yr. billed later.', 'Nine dollars and ninety-nine cents per month, or ninety-nine dollars per year billed later.'),
        ("It costs $19.95/copy and $0.05/kWh.", "It costs nineteen dollars and ninety-five cents per copy and five cents per kilowatt hour."),
        ("Logged 2024-02-01T07:05:30Z on C:\\Users.", 'Logged February first, twenty twenty-four, seven oh five you-tee-see on see colon backslash Users.'),
        ("If a >= 10 && b != 3, then x == 4.", 'If a at least ten and bee is not three, then ex equals four.'),
        ("CO₂, Ca²⁺, 10⁻⁹ m, 10²³ atoms and z⁴.", 'See-oh two, see-eigh two plus, ten to the power of minus nine meters, ten to the power of twenty-three atoms and zee to the power of four.'),
        ("He said so.¹ Then Einstein⁴ left.", "He said so. Then Einstein left."),
        ("At 40°26′46″N, 79°58′ W.", "At forty degrees twenty-six minutes forty-six seconds north, seventy-nine degrees fifty-eight minutes west."),
        ('A 3/4" bolt, a 2"x4" plank, 1/2 in. thick; he said "3/4" twice.', "A three quarters inch bolt, a two by four inch plank, half an inch thick; he said three quarters twice."),
        ("BP 120/80, 1/n of it, 2 x 500mg.", 'Bee-pee one hundred and twenty over eighty, one over en of it, two times five hundred milligrams.'),
        ("In 1939/40 and from Dec. 1941–Aug. 1945, Jan-Mar, Sat/Sun.", "In nineteen thirty-nine forty and from December nineteen forty-one to August nineteen forty-five, January to March, Saturday and Sunday."),
        ("It left at 11.20; a rise at 8.15 percent, g at 9.81 m/s².", 'It left at eleven twenty; a rise at eight point one five percent, gee at nine point eight one meters per second squared.'),
        ("N. London, S. Wales and 12 W. Main St.; plan N. Then rest.", "North London, South Wales and twelve West Main Street; plan en. Then rest."),
        ("100s of people in 1080p, 720p or for 50p.", "Hundreds of people in ten eighty pee, seven twenty pee or for fifty pence."),
        ("~~old~~ new; see §5, ¶3.", "Old new; see section five, paragraph three."),
        ("Flight BA12 dep. 13:25, arr. 16:05, 3rd fl., Rm. 12.", 'Flight bee-eigh one two departing thirteen twenty-five, arriving sixteen oh five, third floor, room twelve.'),
        ('Psalm 23:4 at 120/80 mmHg', 'Psalm twenty-three four at one hundred and twenty over eighty millimeters of mercury'),
        ('In FY2025, the XXIX Olympiad, DC 20500.', 'In fiscal year twenty twenty-five, the twenty-ninth Olympiad, dee-see two zero five zero zero.'),
        ("$0.99 or $1", "Ninety-nine cents or one dollar"),
        ("From 1939–45 it rained.", "From nineteen thirty-nine to forty-five it rained."),
        ("He is 5'10\" tall.", "He is five foot ten tall."),
        ("It was -5°C at 19:05.", "It was minus five degrees Celsius at nineteen oh five."),
        ("Add 1/2 cup, then 3/4.", "Add half a cup, then three quarters."),
        ("Open 24/7, 9am-5pm.", 'Open twenty-four seven, nine eigh-em to five pee-em.'),
        ("the '90s and the 1980s", "The nineties and the nineteen eighties"),
        ("Henry VIII read Chapter IV.", "Henry the eighth read Chapter four."),
        ("C++ on an iPhone 15", "See plus plus on an eye phone fifteen"),
        ("v2.0.1 at 192.168.0.1", "Version two point zero point one at one nine two dot one six eight dot zero dot one"),
        ("No. 10, St. John St.", "Number ten, Saint John Street."),
        ("Dr. Lee lives on Elm Dr. now.", "Doctor Lee lives on Elm Drive now."),
        ("1st May 2024, 2024-11-27", 'The first of May, twenty twenty-four, November twenty-seventh, twenty twenty-four'),
        ("Call (212) 867-5309.", "Call two one two, eight six seven, five three zero nine."),
        ("ISBN 978-3-16-148410-0", 'Eye-ess-bee-en nine seven eight, three, one six, one four eight four one zero, zero'),
        ("Write to me@mail.co.uk.", 'Write to me at mail dot co dot you-kay.'),
        ("See https://example.com/a?b=1.", "See example dot com slash eigh question mark bee equals one."),
        ("NASA and the FBI", 'Nassa and the eff-bee-eye'),
        ("HELLO WORLD, said the CEO.", 'Hello world, said the see-ee-oh.'),
        ("I am SO tired", "I am so tired"),
        ("The U.S. team, e.g. Ann", 'The you-ess team, for example Ann'),
        ("5 km² at 3 m/s with 5 µg", "Five square kilometers at three meters per second with five micrograms"),
        ("1,234,567.89", "One million two hundred and thirty-four thousand five hundred and sixty-seven point eight nine"),
        ("A → B, № 5 & 50% 😀", "Eigh to bee, number five and fifty percent"),
        ("Mr. Müller said “hi”", "Mister Muller said hi"),
        ("In 1999 there were 2000 people.", "In nineteen ninety-nine there were two thousand people."),
        ("Wait 30s.", "Wait thirty seconds."),
        ("- milk\n- eggs", "Milk. Eggs"),
        ("tea, etc. Then we left.", "Tea, et cetera. Then we left."),
        ("The cat (a grey one) slept…", "The cat, a grey one, slept."),
        ("No. I did not.", "No. I did not."),
        ("I love art. I do. See Eq. (4).", "I love art. I do. See equation four."),
        ("He left at 10:00 a.m. Then I came.", 'He left at ten eigh-em. Then I came.'),
        ("Open 9 a.m.–5 p.m. daily", 'Open nine eigh-em to five pee-em daily'),
        ("Capt. Ann met Prof. Lee.", "Captain Ann met Professor Lee."),
        ("Closed on Mon., Tues., and in Mar. too", "Closed on Monday, Tuesday, and in March too"),
        ("In March 10 men came, on March 10 we ate.", "In March ten men came, on March tenth we ate."),
        ("A 21st-century, 2nd-hand hat", "A twenty-first-century, second-hand hat"),
        ("the XIX century, MCMLXXXIV", "The nineteenth century, nineteen eighty-four"),
        ("It was in 1066 that 1066 men fell.", "It was in ten sixty-six that one thousand and sixty-six men fell."),
        ("the 1960s-1970s and 80's music", "The nineteen sixties to nineteen seventies and eighties music"),
        ("A $20 bill, a $5 million deal", "A twenty dollar bill, a five million dollar deal"),
        ("100k fans, 2M views in 4K", "One hundred thousand fans, two million views in four kay"),
        ("1 000 000 people and 1.234,56 €", "One million people and one thousand two hundred and thirty-four point five six euros"),
        ("He is 6' tall, 5 in. thick, on 20 m2.", "He is six feet tall, five inches thick, on twenty square meters."),
        ("5 L/100 km; 6 × 7 = 42; 6/2 = 3", "Five liters per one hundred kilometers; six times seven equals forty-two; six divided by two equals three"),
        ("Rated 4.5/5 or 5/5, a 50-50 chance.", "Rated four point five out of five or five out of five, a fifty fifty chance."),
        ("Max. 10 people, approx 5", "Maximum ten people, approximately five"),
        ("Genesis 1:1-3", "Genesis one one to three"),
        ("A–Z; I met Max. 5 came.", "Eigh to zee; I met Max. Five came."),
        ("the X-Y axis at 12:30 p.m. EST.", 'The ex why axis at twelve thirty pee-em ee-ess-tee.'),
        ("Nf3 and Qxd5+", "Knight eff three and queen takes dee five check"),
        ("Type A/B, I/O, an A- or a B. Then n/a", "Type eigh bee, eye oh, an eigh minus or a bee. Then not applicable"),
        ("Open /etc/hosts now.", "Open slash etc slash hosts now."),
        ("But the White Rabbit saw it, and I'm Alice. The Queen left: Oh dear!", "But the white rabbit saw it, and I'm Alice. The queen left: Oh dear!"),
        ('"Stop," said O\'Brien. (It was late.) "You And I" by McDonald', "Stop, said O'Brien. It was late. You and I by McDonald"),
        ("A café, two fiancées, déjà vu", "A caffay, two feeonsays, dayzhah voo"),
        ("Send a résumé, then resume.", "Send a rezzoomay, then resume."),
        ("Señor Peña's cliché; naïve Zürich", "Senyor Penya's clichay; naive Zurich"),
        ("Charles I lost his head; the George I admired left. James I's son", "Charles the first lost his head; the george I admired left. James the first's son"),
        ("Mail ann@gmail.com or see youtube.com.", "Mail ann at gee mail dot com or see you tube dot com."),
        ("It fell. (Which was so.)", "It fell. Which was so."),
        ("The light was DIM. His no. is 5.", "The light was dim. His number is five."),
        ('He touches it, she touches up the decor.', 'He touches it, she touches up the daycor.'),
        ("A Jacob's-ladder and a cat's-paw on a T-shirt.", "A jacob's-ladder and a cat's-paw on a tee shirt."),
        ('"AAAARGH!" he cried. "GRRRR!" XXXL', 'Aaaargh! He cried. Grrrr! Ex-ex-ex-ell'),
        ('The C.I.A decided; the U.S citizens left.', 'The see-eye-eigh decided; the you-ess citizens left.'),
        ('XII. The Speckled Band', 'Twelve. The speckled band'),
        ('IV\n\nOf the rights of man', 'Four. Of the rights of man'),
        ('Act three, scene iii; chapter iv; pp. xi-xii; see (ii) and (iv) there.', 'Act three, scene three; chapter four; pages eleven to twelve; see, two, and, four, there.'),
        ('"B-but I-I don\'t," he s-said. "W-what? Th-that\'s n-not mine!" An S-shaped U-turn.', "But I, I don't, he said. What? That's not mine! An ess shaped you turn."),
        ('Preheat the oven to 200C (180C fan)/400F/gas mark 6, or 350F.', 'Preheat the oven to two hundred degrees Celsius, one hundred and eighty degrees Celsius fan, four hundred degrees Fahrenheit, gas mark six, or three hundred and fifty degrees Fahrenheit.'),
        ('It was 38.6 C at 09.30, dep. 14.05.', 'It was thirty-eight point six degrees Celsius at nine thirty, departing fourteen oh five.'),
        ('2 c. flour, 1 c. milk, 3 T. oil; 300ml/½ pint milk, 500g/1lb flour.', 'Two cups flour, one cup milk, three tablespoons oil; three hundred milliliters, half a pint milk, five hundred grams, one pound flour.'),
        ('Simmer for 1-1½ hours, a 2- to 3-lb chicken, the 10-yr yield.', 'Simmer for one to one and a half hours, a two to three pound chicken, the ten year yield.'),
        ('It cost £3 10s. 6d. and then 2s. 6d., or £5 10s.', 'It cost three pounds ten shillings and six pence and then two shillings and six pence, or five pounds ten shillings.'),
        ('The record is 2:00:35; fax 555.123.4567.', 'The record is two oh oh thirty-five; fax five five five, one two three, four five six seven.'),
        ('Open Mon.-Fri. 9am, T/Th 10-11:30.', 'Open Monday to Friday nine eigh-em, tee Th ten to eleven thirty.'),
        ('See Fed. R. Civ. P. 12(b)(6), 28 USC §§ 1331-1332 and s. 2(1) of the Act; cl. 4, Sch. 2, reg. 7.', 'See Federal Rule of Civil Procedure twelve, bee, six, twenty-eight you-ess-see sections thirteen thirty-one to thirteen thirty-two and section two, one, of the act; clause four, schedule two, regulation seven.'),
        ('10% p.a. on EUR/USD 1.0845 and gold at $2,034/oz.', 'Ten percent per annum on ee-you-ar you-ess-dee one point zero eight four five and gold at two thousand and thirty-four dollars per ounce.'),
        ('Mme. Bovary met Pvt. Ryan in Pt. 3, Bk. II, Op. 27 No. 2.', 'Madame Bovary met Private Ryan in part three, book two, opus twenty-seven number two.'),
        ('In 1 Cor 13:4 and 2 Tim. 3 it says so.', 'In First Corinthians thirteen four and Second Timothy three it says so.'),
        ('"I KNOW it, I AM sure," said the SCHOOL. "HO HO HO, this OR that?"', 'I know it, I am sure, said the school. Ho ho ho, this or that?'),
        ('He had a KNIFE, a SIGN and STUFF in the QUEUE; he will DIE. The ALGORITHM.', 'He had a knife, a sign and stuff in the queue; he will die. The algorithm.'),
        ("Let's-see what; the OR is closed.", "Let's-see what; the oh-ar is closed."),
        ('The FDA, AARP, EBITDA and IRS.', 'The eff-dee-eigh, eigh-eigh-ar-pee, ebitda and eye-ar-ess.'),
        ('In a landmark 1979 tax decision, the War of 1812; a further 1500 votes.', 'In a landmark nineteen seventy-nine tax decision, the war of eighteen twelve; a further one thousand five hundred votes.'),
        ('He is in his 30s or 40s, it was the 1960s and 70s; wait 30s or 40s.', 'He is in his thirties or forties, it was the nineteen sixties and seventies; wait thirty seconds or forty seconds.'),
        ('His laws: (1) win; use 2.0.x (or 3.x). Revelations 21:8', 'His laws: one, win; use two point zero point ex, or three point ex. Revelations twenty-one eight'),
        ('Robert V. Daniels and John I. Taylor lived under George V. The war came. Henry V, he said.', 'Robert vee Daniels and John I. Taylor lived under George the fifth. The war came. Henry the fifth, he said.'),
        ('It quotes Malatesta from 1891 on this, in 1932 and 1933 in more detail; the 1883-6 period; from 1200 men; see section H.3.10 and A.1.', 'It quotes Malatesta from eighteen ninety-one on this, in nineteen thirty-two and nineteen thirty-three in more detail; the eighteen eighty-three to six period; from one thousand two hundred men; see section aitch point three point ten and eigh point one.'),
        ('The odds of 7/2 were generous; at odds of 100/1, a 5/2 favourite; at 1/2 of that.', 'The odds of seven to two were generous; at odds of one hundred to one, a five to two favourite; at half of that.'),
        ('England were 245/6 at lunch. She ran 10km in 42:37; the ratio 30:40.', 'England were two hundred and forty-five for six at lunch. She ran ten kilometers in forty-two thirty-seven; the ratio thirty to forty.'),
        ('On 12.5.90 it was signed; Python 3.12.10 came.', 'On the twelfth of May, nineteen ninety it was signed; Python three point twelve point ten came.'),
        ('F-16s and B-52s flew over Boeing 737s, a Boeing 747, B♭ and F♯.', 'Eff sixteens and bee fifty-twos flew over Boeing seven-thirty-sevens, a boeing seven-forty-seven, bee flat and eff sharp.'),
        ("ISSN 2049-3630; 6.022×10²³; $15k p.a.; The temp. was high; lat. 51°30'N.", 'Eye-ess-ess-en two zero four nine, three six three zero; six point zero two two times ten to the power of twenty-three; fifteen thousand dollars per annum; the temperature was high; latitude fifty-one degrees thirty minutes north.'),
        ('Brown & Co., Inc. v. Board lost 234.5 pts; a 25bps hike, 10 mmol/L in 5 µL, 10 Gbit/s, 256-bit keys.', 'Brown and Company, Incorporated versus Board lost two hundred and thirty-four point five points; a twenty-five basis points hike, ten millimoles per liter in five microliters, ten gigabits per second, two hundred and fifty-six bit keys.'),
        ("The winter of '78-'79; Matt. 5:3, Ep. 3, S02E05; <1%, 0/10, a 90° angle, Nr. 5, 2 sq. miles, 1'234 francs, 0900–1700.", 'The winter of seventy-eight to seventy-nine; Matthew five three, Episode three, season two episode five; less than one percent, zero out of ten, a ninety degree angle, number five, two square miles, one thousand two hundred and thirty-four francs, oh nine hundred hours to seventeen hundred hours.'),
        ('2 Tbsp. butter; the store between 34th & 35th Sts. sells; the 2nd Fl. of the 19th c. house.', 'Two tablespoons butter; the store between thirty-fourth and thirty-fifth Streets sells; the second floor of the nineteenth century house.'),
        ("Ver. 10.0.19045; a V8 engine and v8.1; my 401(k); WFH 2x/wk; press Cmd and listen to rock 'n' roll.", 'Version ten point zero point nineteen thousand and forty-five; a vee eight engine and version eight point one; my four oh one kay; double-you-eff-aitch two times per week; press command and listen to rock and roll.'),
        ('At 11:59:59 PM, UTC-5, a $5-a-day habit at $82/bbl.', 'At eleven fifty-nine fifty-nine pee-em, you-tee-see minus five, a five dollar a day habit at eighty-two dollars per barrel.'),
        ('Invoice #INV-2024; your OTP: 993-201; dial *67; mix A:B.', 'Invoice number eye-en-vee two zero two four; your oh-tee-pee: nine nine three, two zero one; dial star sixty-seven; mix eigh to bee.'),
        ('Pls. ask Dr. A. Patel.', 'Please ask Doctor Eigh Patel.'),
    ],
)  # fmt: skip
def test_what_is_said(written: str, spoken: str) -> None:
    assert spoken_form(written) == spoken


@pytest.mark.parametrize(
    "text",
    [
        "Alice was beginning to get very tired of sitting by her sister.",
        "I said that I was there, and it's true; isn't it?",
        "Well-known people may march on Sunday. No, they won't!",
    ],
)
def test_plain_prose_stays_as_it_is(text: str) -> None:
    assert spoken_form(text) == text


@settings(max_examples=120, deadline=None)
@given(WRITTEN, st.integers(1, 9))
@example("£20", 1)
@example("3.5 and 3 .5", 2)
@example("met Dr. Smith on Elm Dr. at 5 p.m. on", 3)
def test_pieces_of_any_size_are_said_like_the_whole(text: str, size: int) -> None:
    form = SpokenForm()
    pieces = [form.append(text[at : at + size]) for at in range(0, len(text), size)]
    assert "".join([*pieces, form.close()]).strip() == spoken_form(text)


@settings(max_examples=120, deadline=None)
@given(WRITTEN | st.text(max_size=80))
def test_only_words_are_said_and_what_is_said_stays(text: str) -> None:
    spoken = spoken_form(text)
    assert SAID.fullmatch(spoken), spoken


def test_words_are_given_before_the_text_ends() -> None:
    form = SpokenForm()
    assert form.append("The train leaves at ") == "The train leaves "
    assert form.append("7:") == ""
    assert form.append("45 from here and ") == "at seven forty-five from here "


@pytest.mark.parametrize(
    "unit",
    ["1", "1,", "1.", "A", "A.", "a.", "-", "1-", "£", "'", "(", "@", "a@", "/", "1/", ":", "I", "ab ",
     "http://", "\n", " ", "é", "1st ", "Dr. ", "XIV ", "[", "www.", "²", "1°", "=", "~", "N. ", "1/2", "at 1.1", "Jan-", "#a", "+1 ", "1:", "V", "<a", "/a/", "1 000 ", "1:1-", "A/", "1.000", "M", "20th-", "B. "],
)  # fmt: skip
def test_time_is_linear_in_hostile_text(unit: str) -> None:
    spoken_form("1234 2nd 99")  # loads the number words
    text = unit * (10_000 // len(unit))
    started = time.process_time()
    spoken_form(text)
    assert time.process_time() - started < SOON


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("He ran, eſp. here, vſ. us; Fıg. 5, İ.e. a ſouffle.", "He ran, especially here, versus us; figure five, That is a sooflay."),
        ("ſee ſec. 5 and ISTANBUL, İstanbul.", "See section five and istanbul, Istanbul."),
    ],
)  # fmt: skip
def test_letters_that_only_case_makes_alike_are_read(written: str, spoken: str) -> None:
    assert spoken_form(written) == spoken


def test_other_alphabets_are_told_letter_by_letter() -> None:
    form = SpokenForm()
    for mark in "He said α, Καλημέρα":
        form.append(mark)
    assert form.foreign == ("Greek",)


def test_other_alphabets_are_told() -> None:
    assert foreign_alphabets("Müller, naïve, 5 µg, α and π → ½") == ()
    assert foreign_alphabets("He said Привет to 你好") == ("Cjk", "Cyrillic")
