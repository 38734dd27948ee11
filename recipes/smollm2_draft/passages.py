"""Short invented texts of many kinds, for prompts that summarise, extract or rewrite. Subjects of the gate texts are kept out."""

import random

WORDS = {
    "first": "Maria;John;Aisha;Pedro;Lin;Olga;Samuel;Fatima;Henrik;Chloe;Ravi;Yuki;Tom;Nora;Carlos;Ingrid;Ahmed;Sofia;Paul;Grace;Ivan;Mei;Luca;Hanna",
    "last": "Lopez;Smith;Khan;Silva;Chen;Petrova;Brown;Haddad;Berg;Martin;Patel;Tanaka;Reed;Olsen;Garcia;Novak;Ali;Rossi;Weber;Okoye;Dubois;Kim",
    "city": "Porto;Leeds;Graz;Turin;Malmo;Denver;Osaka;Nairobi;Lyon;Krakow;Quito;Perth;Bergen;Austin;Cork;Ghent;Tampere;Izmir;Halifax;Bristol",
    "street": "Station Road;Mill Street;Park Avenue;Garden Lane;Church Square;Bridge Street;Oak Drive;High Street;Market Place;River Walk",
    "month": "January;February;March;April;May;June;July;August;September;October;November;December",
    "weekday": "Monday;Tuesday;Wednesday;Thursday;Friday;Saturday;Sunday",
    "thing": "desk lamp;office chair;water bottle;backpack;laptop stand;coffee grinder;garden hose;raincoat;tent;bookshelf;toaster;bicycle pump;wall clock;"
    "notebook;camera bag;frying pan;wool blanket;keyboard;suitcase;picture frame;headset;rice cooker;ladder;drill",
    "place": "library;school;town hall;sports centre;bakery;museum;swimming hall;bus station;theatre;community garden;hospital;cinema;farm shop;gallery",
    "job": "teacher;engineer;nurse;carpenter;baker;journalist;gardener;pilot;chemist;driver;designer;librarian;electrician;cook;lawyer;farmer",
    "event": "concert;book fair;charity run;science day;open house;flea sale;cooking class;film night;chess tournament;lecture;dance evening;job fair",
    "problem": "a broken pump;a software fault;heavy snow;a missing part;a power cut;a strike;a leaking roof;a wrong address;an expired licence;high demand",
    "animal": "dog;fox;owl;horse;goat;heron;hedgehog;parrot;squirrel;donkey;rabbit;crow",
    "product": "scheduler;mobile app;web shop;database;text editor;map service;photo tool;mail server;game engine;backup program",
    "feature": "a dark mode;faster search;export to PDF;offline use;a new login page;better error messages;shared folders;automatic backups;keyboard shortcuts",
    "food": "lentil soup;apple cake;fish stew;flat bread;bean salad;pancakes;roast vegetables;noodle soup;cheese pie;rice pudding",
    "item": "flour;butter;sugar;eggs;milk;onions;carrots;rice;beans;olive oil;salt;garlic;cheese;tomatoes;potatoes",
}
WORDS_OF = {name: words.split(";") for name, words in WORDS.items()}

TEMPLATES = (
    "Order {n5} was placed by {first} {last} on {d} {month} {year}. It contains {n1} pieces of the {thing} at {price} euros each and one {thing} at {price} euros. The parcel goes to {n2} {street}, {city}, and the phone number is 555-{n4}.",
    "The {place} in {city} will be closed from {d} to {d2} {month} because of {problem}. Visitors can use the {place} on {street} instead. The manager, {first} {last}, hopes to open again on a {weekday}.",
    "{first} {last} has worked as a {job} in {city} for {n2} years. Every {weekday} {first} gets up at {h} o'clock, takes the bus to {street}, and meets {first} from the {place}. In {year} they started a small {event} that now has {n3} visitors.",
    "Version {n1}.{n1} of the {product} was released on {d} {month}. It brings {feature} and {feature}, and fixes a fault that {n3} users had reported. The team, led by {first} {last}, asks everybody to update before {month}, since support for the old version ends then.",
    "Dear {first}, thank you for your letter of {d} {month}. I am sorry that the {thing} arrived late and damaged because of {problem}. We will send a new one on {weekday} and return {price} euros to your account. Kind regards, {first} {last}, customer service.",
    "The {event} takes place on {weekday}, {d} {month}, at the {place} on {street}. Doors open at {h} o'clock. Tickets cost {price} euros, children under {n2} pay half. Please write to {first} {last} if you want to help.",
    "A {animal} walked into the {place} of {city} on {weekday} morning. {first} {last}, who works there as a {job}, first thought of a joke. It ate {n1} sandwiches, slept under a table and left at {h} o'clock. Nobody knows where it came from.",
    "For the {food} you need {n3} grams of {item}, {n2} grams of {item}, some {item} and a little {item}. Mix everything, let it rest for {n2} minutes, and cook it for {n2} minutes at {n3} degrees. It serves {n1} people. {first} likes it best with {item}.",
    "hi {first}, cant come to the {event} on {weekday}, my {thing} is broken and i have to wait for the {job}. can you tell {first} and bring my {thing}? i owe you {n1} coffees, see you at the {place}, {first}",
    "The meeting began at {h} o'clock in {city}. {first} {last} reported that sales of the {thing} rose by {n2} percent in {month}, while the {product} cost {n3} dollars more than planned because of {problem}. {first} {last} will write a new plan by {d} {month}. The next meeting is on {weekday}.",
    "For sale: {thing}, bought in {year}, used only {n1} times, {price} euros. It has a small scratch and comes with a {thing}. Collect it in {city}, {street} {n2}, on {weekday} after {h} o'clock. Ask for {first}.",
    "In {year} the people of {city} decided to build a {place}. It was planned for {n3} visitors and should cost {n2} million, but {problem} stopped the work for {n1} years. The {job} {first} {last} collected money at a {event}, and in {year} the doors opened at last.",
    '"Where is the {thing}?" asked {first}. "I gave it to {first} on {weekday}," said {first}, "and {first} left it at the {place}." They called the {place} at {h} o\'clock. The {job} had found it beside a {thing} and had kept it for {n1} days.',
    "Notice to all members: the yearly fee rises from {price} to {price} euros from {d} {month}. It pays for {feature} and for a new {thing}. Members who do not agree may cancel by letter to {first} {last}, {street} {n2}, {city}, before {d2} {month}.",
    "The {thing} model {letter}{n2} weighs {n1} kilograms, measures {n2} by {n2} centimetres and works for {h} hours. It costs {price} euros and has {feature}. The guarantee lasts {n1} years. Do not use it in the rain, and keep it away from {item}.",
    "{first} has a {animal} and a {animal}. The {animal} is {n1} years old, sleeps all day and eats {item}. The {animal} follows {first} to the {place} each {weekday} and waits at the door until {h} o'clock. When {first} comes out, it jumps as if {n2} years had passed.",
    "The flight from {city} to {city} on {d} {month} was delayed by {n1} hours because of {problem}. {n3} passengers waited at the gate. The airline gave each of them a voucher of {price} euros, and {first} {last} apologised on behalf of the company.",
    "Last {weekday} me and my brother goes to the {place} in {city}. We seen a {animal} and buyed two {thing}. My brother have forgot his money, so i payed {price} euro for both. It were a nice day but we was very tired.",
    "According to a survey of {n3} people in {city}, {n2} percent walk to work, {n2} percent take the bus and the rest drive. The {job} {first} {last}, who led the survey in {month} {year}, was surprised by how many people use a {thing} on the way.",
    "The course starts on {d} {month} and lasts {n1} weeks. It meets every {weekday} at {h} o'clock in the {place}. You learn to plan a {event}, to repair a {thing} and to cook {food}. It is led by {first} {last}, who is a {job}, and costs {price} euros.",
)

EXPLAIN = (
    "a microwave oven;a thermostat;a vacuum cleaner;an elevator brake;a camera lens;a printer;a fridge magnet;a wind turbine;a hot air balloon;a submarine;"
    "a piano;a flute;a traffic light;a touch screen;a battery charger;a solar cell;a dishwasher;a sewing machine;a bicycle gear;a parachute;a thermometer;"
    "a compass;a mirror;a light bulb;a door lock;a ballpoint pen;a fire extinguisher;a smoke detector;a hearing aid;a pacemaker;a greenhouse;a dam;a crane;"
    "a jet engine;a clutch;a radar;a satellite dish;a credit card;a search engine;a spam filter;a hash map;a compiler;a web browser;a router;a backup;"
    "a stock exchange;an election;a vaccine;a blood test;a hearing;a court trial;a mortgage;an insurance;a recipe;a crossword;a novel;a documentary"
).split(";")
WHY = (
    "leaves turn red in autumn;ice floats on water;the moon changes its shape;cats purr;birds fly in a V;bread rises;salt melts ice;we yawn;we dream;metal rusts;"
    "popcorn pops;the desert is cold at night;honey does not spoil;thunder follows lightning;hot air rises;soap cleans;planes leave white trails;fish have scales;"
    "our ears pop in a plane;milk turns sour;stars twinkle;mosquitoes bite;the heart beats faster when we run;languages change;prices rise;people collect things;"
    "some people are left-handed;wood floats;glass is transparent;volcanoes erupt;rivers bend;bees make honey;trees have rings;we need sleep;muscles get sore"
).split(";")
TROUBLE = (
    "I lost my keys and I am locked out;My phone fell into water;I burned the rice again;My neighbour plays loud music at night;I have a headache before an exam;"
    "I do not know what to cook for six guests;My boss wants the report today and I am not ready;My child does not want to go to school;I want to save money but I never do;"
    "I am afraid of flying;My plants keep dying;I sent an email to the wrong person;I cannot decide between two jobs;My bike was stolen;I feel lonely in a new city;"
    "I forgot my friend's birthday;I want to learn the guitar at forty;My computer is very slow;I have to give a toast at a wedding;I cannot sleep well;"
    "My car makes a strange noise;I want to run five kilometres;My room is always untidy;I argue with my sister about everything;I need a present for my grandfather;"
    "I have a job interview tomorrow;I broke a glass in a shop;My dog is afraid of storms;I want to read more books;I am late with my homework"
).split(";")
TROUBLE_ASK = (
    "What should I do?",
    "Any ideas?",
    "Can you help me?",
    "Where do I start?",
    "What would you do?",
    "How can I fix this?",
    "Give me some advice.",
)


def passage(rng: random.Random) -> str:
    """One invented text."""
    return _fill(rng.choice(TEMPLATES), rng)


def question(rng: random.Random) -> str:
    """A question about how a thing works, why something happens, or what to do in a small trouble."""
    kind = rng.randrange(3)
    if kind == 0:
        form = rng.choice(("How does {x} work?", "Explain how {x} works.", "Explain step by step how {x} works.", "What is {x} for?"))
        return form.format(x=rng.choice(EXPLAIN))
    if kind == 1:
        form = rng.choice(("Explain why {x}.", "Why is it that {x}?", "Do you know why {x}?", "Explain in simple words why {x}."))
        return form.format(x=rng.choice(WHY))
    return f"{rng.choice(TROUBLE)}. {rng.choice(TROUBLE_ASK)}"


def _fill(template: str, rng: random.Random) -> str:
    out, rest = [], template
    while "{" in rest:
        before, _, rest = rest.partition("{")
        slot, _, rest = rest.partition("}")
        out += [before, _value(slot, rng)]
    return "".join([*out, rest])


def _value(slot: str, rng: random.Random) -> str:
    if slot in WORDS_OF:
        return rng.choice(WORDS_OF[slot])
    if slot.startswith("n"):
        digits = int(slot[1:])
        return str(rng.randrange(10 ** (digits - 1) + (digits == 1), 10**digits))
    ranges = {"d": (1, 15), "d2": (16, 29), "h": (6, 12), "year": (1950, 2026)}
    if slot in ranges:
        return str(rng.randrange(*ranges[slot]))
    return f"{rng.randrange(2, 300)}.{rng.randrange(10)}0" if slot == "price" else rng.choice("ABKMRTX")
