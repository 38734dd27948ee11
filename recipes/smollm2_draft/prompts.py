"""Prompts that the target answers to make training text for its draft. Subjects of the gate prompts are kept out."""

import random
from collections.abc import Sequence

from passages import passage, question

TOPICS = (
    "photosynthesis;gravity;inflation;the water cycle;vaccines;black holes;electric cars;recycling;the French Revolution;sleep;"
    "volcanoes;the stock market;machine learning;healthy breakfasts;public libraries;bees;glaciers;the printing press;solar panels;"
    "earthquakes;democracy;chess;the human heart;the immune system;coffee;rainforests;budgeting;time management;the Roman Empire;"
    "DNA;batteries;rockets;the internet;email security;databases;operating systems;compilers;binary search;sorting algorithms;"
    "unit tests;version control;recursion;linked lists;web servers;encryption;train journeys;city gardens;lighthouses;old clocks;"
    "mountain villages;robots;birthday parties;job interviews;camping trips;football;science fairs;museums;gardening;public speaking;"
    "saving money;running;cooking pasta;teamwork;stress;reading habits;air pollution;clean water;wind power;whales;penguins;the moon;"
    "Mars;dinosaurs;maps;bridges;sound waves;light;magnets;acids;metals;probability;fractions;triangles;statistics;poetry;painting;"
    "music theory;sailing;hiking boots;bicycles;airports;the Silk Road;ancient Egypt;the Renaissance;the Cold War;trade unions;taxes;"
    "insurance;mortgages;credit scores;startups;marketing;customer service;remote work;meetings;leadership;negotiation;friendship;"
    "grief;happiness;curiosity;honesty;patience;yoga;vitamins;allergies;headaches;the brain;memory;the lungs;bones;muscles;the skin;"
    "cats;dogs;horses;elephants;spiders;ants;owls;sharks;coral reefs;mushrooms;trees;roses;tomatoes;bread;cheese;rice;tea;chocolate;"
    "spices;soup;salads;fermentation;deserts;rivers;islands;mountains;forests;caves;storms;snow;clouds;rainbows;the sun;stars;comets;"
    "galaxies;satellites;telescopes;microscopes;lasers;semiconductors;transistors;radio;television;cameras;film making;theatre;opera;"
    "jazz;guitars;pianos;drums;dance;sculpture;architecture;photography;novels;fairy tales;myths;biographies;dictionaries;grammar;"
    "translation;sign language;handwriting;typography;newspapers;advertising;propaganda;elections;constitutions;courts;human rights;"
    "police work;firefighters;nurses;teachers;engineers;farmers;fishermen;tailors;carpenters;plumbers;electricians;pilots;astronauts;"
    "APIs;cloud computing;caching;load balancing;containers;message queues;neural networks;decision trees;regular expressions;"
    "garbage collection;threads;deadlocks;graphs;trees in computer science;dynamic programming;floating point numbers;hash functions;"
    "passwords;phishing;firewalls;backups;open source software;code review;debugging;documentation;agile development;user interfaces"
).split(";")

ASK = (
    "Explain {t} in simple words.",
    "Explain {t} to a child.",
    "What are the main facts about {t}?",
    "Write a short paragraph about {t}.",
    "Give me five tips or ideas about {t}.",
    "Why does {t} matter?",
    "Write a short story that mentions {t}.",
    "Write an email that invites a friend to talk about {t}.",
    "Compare {t} with something similar.",
    "Make a list of questions and answers about {t}.",
    "Give a short history of {t}.",
    "Write a poem about {t}.",
    "What should a beginner know about {t}?",
    "How would you describe {t}?",
    "Tell me something interesting about {t}.",
    "What are the advantages and disadvantages of {t}?",
    "How does {t} affect everyday life?",
    "I want to learn about {t}. Where do I start?",
    "What are common mistakes people make with {t}?",
    "Can you help me to plan a talk about {t}?",
    "Describe {t} step by step.",
    "What is {t}?",
)

CHAT = (
    "Hi! How are you today?",
    "I had a long day and feel tired. What can I do tonight?",
    "Can you recommend a hobby for somebody who likes {t}?",
    "My friend and I disagree about {t}. What do you think?",
    "I am bored. Let us talk about {t}.",
    "What would you ask an expert on {t}?",
    "Help me to write a message to my sister about {t}.",
    "I am nervous because I have to speak about {t} tomorrow.",
    "Give me a plan for a weekend that has to do with {t}.",
    "What gift could I buy for a person who loves {t}?",
)

TASKS = (
    "sorts a list of numbers;checks whether a word is a palindrome;finds the largest item of a list;computes a factorial;merges two "
    "dictionaries;removes duplicates from a list;counts words in a text;converts Celsius to Fahrenheit;reads a JSON file;writes a log "
    "file;finds prime numbers;computes the average of a list;parses a date;downloads a page;flattens a nested list;capitalises each "
    "word;implements a stack;implements a queue;searches a sorted list;validates an email address;generates a random password;"
    "multiplies two matrices;computes a greatest common divisor;splits a string;reverses the words of a sentence;finds the second "
    "largest number;rotates a list;checks whether two words are anagrams;computes compound interest;counts characters in a file;"
    "prints a multiplication table;finds common items of two lists;computes a running total;converts a number to binary;checks "
    "whether a year is a leap year;finds the longest word;sums the digits of a number;groups records by a key;retries a failing call;"
    "measures how long a function takes;reads lines from standard input;sends an HTTP request;connects to a database;draws a triangle "
    "of stars;simulates rolling two dice;encodes a text with a Caesar cipher;walks a directory;compares two versions;caches results"
).split(";")
LANGUAGES = ("Python", "Python", "Python", "Python", "JavaScript", "Java", "C", "SQL", "bash", "Go", "C++", "Rust")
CODE = (
    "Write a {l} function that {c}.",
    "Show me {l} code that {c}.",
    "How do I write a {l} program that {c}? Explain the code.",
    "Write a {l} class that {c} and add comments.",
    "Give me a short {l} example that {c}, with a test.",
)

WITH_TEXT = (
    "Summarise this text in two sentences:\n\n{p}",
    "Summarise the following text in one sentence:\n\n{p}",
    "List the key facts of this text:\n\n{p}",
    "Rewrite this text in simpler words:\n\n{p}",
    "Rewrite this text in a formal tone:\n\n{p}",
    "Rewrite the following text in the past tense:\n\n{p}",
    "Correct the spelling and grammar of this text:\n\n{p}",
    "Extract the names, numbers and dates from this text:\n\n{p}",
    "Extract the most important words from this text as a list:\n\n{p}",
    "Write a title for this text:\n\n{p}",
    "Which facts are mentioned in this text? List them.\n\n{p}",
    "Answer in one sentence: what is this text about?\n\n{p}",
    "Give a short summary of this message:\n\n{p}",
    "Summarise this for a busy reader:\n\n{p}",
    "Which questions does this text answer? List them.\n\n{p}",
    "List every person and place in this text, one on each line:\n\n{p}",
    "Rewrite this text in the present tense:\n\n{p}",
    "Rewrite this text in the first person:\n\n{p}",
    "Rewrite this text as a friendly message:\n\n{p}",
    "Write out this text without mistakes:\n\n{p}",
    "Extract the date, the place and the price from this text:\n\n{p}",
    "Turn this text into a list of short points:\n\n{p}",
    "Repeat this text and replace all names by initials:\n\n{p}",
)


def training_prompt(rng: random.Random, passages: Sequence[str], invented: float = 0.0) -> str:
    """One prompt. A text inside it is invented with probability `invented`, else one of `passages`, the target's own earlier answers."""
    kind = rng.random()
    if kind < 0.15 * invented:
        return question(rng)
    if kind < 0.28 + 0.3 * invented and (passages or invented):
        text = passage(rng) if rng.random() < invented or not passages else rng.choice(passages)
        return rng.choice(WITH_TEXT).format(p=text)
    if kind < 0.48 + 0.25 * invented:
        return rng.choice(CODE).format(l=rng.choice(LANGUAGES), c=rng.choice(TASKS))
    if kind < 0.58 + 0.22 * invented:
        return rng.choice(CHAT).format(t=rng.choice(TOPICS))
    return rng.choice(ASK).format(t=rng.choice(TOPICS))
