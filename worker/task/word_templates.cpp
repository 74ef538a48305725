#include "worker/task/word_templates.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "worker/task/word_story.hpp"

namespace kvsweep::task {
namespace {

using Words = std::string;

// Every number of a story stays at or below this, but for the notes that goods are paid with: small
// enough that a model of a few million parameters can learn to calculate with them, so that what is
// lost under a low-bit cache is lost by the cache.
constexpr int kLargest = 99;

struct Person {
  const char* name;
  const char* subject;  // "She"
};

constexpr std::array<Person, 24> kPeople = {{
    {"Ada", "She"},   {"Amir", "He"},  {"Bela", "He"},   {"Carla", "She"}, {"Dario", "He"},
    {"Elena", "She"}, {"Farid", "He"}, {"Greta", "She"}, {"Hugo", "He"},   {"Ines", "She"},
    {"Jonas", "He"},  {"Kira", "She"}, {"Liam", "He"},   {"Mona", "She"},  {"Nils", "He"},
    {"Olga", "She"},  {"Pavel", "He"}, {"Rosa", "She"},  {"Sami", "He"},   {"Tessa", "She"},
    {"Umar", "He"},   {"Vera", "She"}, {"Willem", "He"}, {"Yara", "She"},
}};
constexpr std::array<const char*, 14> kThings = {
    "marbles", "shells", "stickers", "stamps",   "buttons", "coins",   "postcards",
    "badges",  "beads",  "pebbles",  "feathers", "cards",   "ribbons", "toy cars"};
constexpr std::array<const char*, 10> kFood = {"apples", "plums",   "cookies",  "muffins",
                                               "pears",  "walnuts", "cherries", "dates",
                                               "rolls",  "lemons"};
constexpr std::array<const char*, 8> kContainers = {"boxes",  "bags",  "baskets", "jars",
                                                    "crates", "trays", "drawers", "tins"};
constexpr std::array<const char*, 10> kGoods = {"notebooks", "pens",   "candles", "mugs",
                                                "kites",     "caps",   "brushes", "lamps",
                                                "scarves",   "puzzles"};
constexpr std::array<const char*, 6> kPlants = {
    "tulips", "tomato plants", "bean plants", "strawberry plants", "rose bushes", "pepper plants"};

template <typename Array>
const auto& pick(const Array& array, Rng& rng) {
  return array[rng.below(array.size())];
}

// Another entry than `taken`.
template <typename Array>
const auto& pick_other(const Array& array, const void* taken, Rng& rng) {
  const auto* chosen = &pick(array, rng);
  while (chosen == taken) chosen = &pick(array, rng);
  return *chosen;
}

int number(Rng& rng, int low, int high) {
  return static_cast<int>(rng.between(low, high));
}
Words text(int value) {
  return std::to_string(value);
}
Words money(int value) {
  return "$" + std::to_string(value);
}

// Somebody's collection grows and shrinks: 1 to 3 steps.
void collection(Story& story, Rng& rng) {
  const Person& who = pick(kPeople, rng);
  const Person& friend_ = pick_other(kPeople, &who, rng);
  const Words things = pick(kThings, rng);
  int have = number(rng, 5, 40);
  story.say(Words(who.name) + " has " + text(have) + " " + things + ".");
  const int events = number(rng, 1, 3);
  for (int i = 0; i < events; ++i) {
    const Words also = i == 0 ? "" : "then ";
    const Words line = Words(who.name) + (i + 1 < events ? " then has" : " now has");
    if (have > 4 && (have > kLargest - 20 || rng.chance(0.5))) {
      const int given = number(rng, 2, std::min(20, have - 2));
      story.say(Words(who.subject) + " " + also + "gives " + text(given) + " of them to " +
                friend_.name + ".");
      have = story.step(have, '-', given, {line, things});
    } else {
      const int found = number(rng, 2, 20);
      story.say(Words(who.subject) + " " + also + "finds " + text(found) + " more.");
      have = story.step(have, '+', found, {line, things});
    }
  }
  story.say("How many " + things + " does " + who.name + " have now?");
}

// Equal containers, perhaps with something taken out and put in: 1 to 3 steps.
void containers(Story& story, Rng& rng) {
  const Words things = pick(kThings, rng);
  const Words boxes = pick(kContainers, rng);
  const int count = number(rng, 3, 9);
  const int each = number(rng, 3, 9);
  story.say("There are " + text(count) + " " + boxes + " with " + text(each) + " " + things +
            " in each.");
  int total = story.step(count, '*', each, {"The " + boxes + " hold", things});
  if (rng.chance(0.6)) {
    const int taken = number(rng, 2, std::min(30, total - 2));
    story.say(Words(pick(kPeople, rng).name) + " takes out " + text(taken) + " " + things + ".");
    total = story.step(total, '-', taken, {"After that there are", things});
  }
  if (rng.chance(0.4)) {
    const int added = number(rng, 2, 18);
    story.say("Later " + text(added) + " new " + things + " are put in.");
    story.step(total, '+', added, {"With the new ones there are", things});
  }
  story.say("How many " + things + " are in the " + boxes + " now?");
}

// One or two kinds of goods, perhaps change from a note: 1 to 4 steps.
void shopping(Story& story, Rng& rng) {
  const Person& who = pick(kPeople, rng);
  const auto& first = pick(kGoods, rng);
  const auto& second = pick_other(kGoods, &first, rng);
  const int count = number(rng, 2, 6);
  const int price = number(rng, 2, 9);
  story.say(Words(who.name) + " buys " + text(count) + " " + first + " for " + money(price) +
            " each.");
  int total = story.step(count, '*', price, {"The " + Words(first) + " cost", "", "$"});
  if (rng.chance(0.6)) {
    const int more = number(rng, 2, 5);
    const int other_price = number(rng, 2, 9);
    story.say(Words(who.subject) + " also buys " + text(more) + " " + second + " for " +
              money(other_price) + " each.");
    const int other =
        story.step(more, '*', other_price, {"The " + Words(second) + " cost", "", "$"});
    total = story.step(total, '+', other, {"Together they cost", "", "$"});
  }
  if (rng.chance(0.5)) {
    const int paid = (total / 50 + 1) * 50;
    story.say(Words(who.subject) + " pays with " + money(paid) + ".");
    story.step(paid, '-', total, {"The change is", "", "$"});
    story.say("How many dollars of change does " + Words(who.name) + " get?");
  } else {
    story.say("How many dollars does " + Words(who.name) + " pay in all?");
  }
}

// Wages, perhaps with expenses: 2 to 4 steps.
void wages(Story& story, Rng& rng) {
  const Person& who = pick(kPeople, rng);
  const int wage = number(rng, 3, 9);
  const int hours = number(rng, 2, 5);
  const int days = number(rng, 2, std::min(5, kLargest / (wage * hours)));
  story.say(Words(who.name) + " earns " + money(wage) + " an hour and works " + text(hours) +
            " hours a day.");
  const int daily =
      story.step(wage, '*', hours, {Words("In a day ") + who.name + " earns", "", "$"});
  story.say("This week " + Words(who.name) + " works on " + text(days) + " days.");
  int total = story.step(daily, '*', days, {"In the week that makes", "", "$"});
  if (total <= kLargest - 10 && rng.chance(0.6)) {
    const int bonus = number(rng, 5, std::min(20, kLargest - total));
    story.say(Words(who.subject) + " also gets a bonus of " + money(bonus) + ".");
    total = story.step(total, '+', bonus, {"With the bonus it is", "", "$"});
  }
  if (rng.chance(0.5)) {
    const int spent = number(rng, 2, std::min(30, total - 2));
    story.say("Then " + Words(who.name) + " spends " + money(spent) + ".");
    story.step(total, '-', spent, {"What is left is", "", "$"});
  }
  story.say("How many dollars does " + Words(who.name) + " have at the end?");
}

// Two heaps put together and shared without a remainder: 2 or 3 steps.
void sharing(Story& story, Rng& rng) {
  const Person& who = pick(kPeople, rng);
  const Person& friend_ = pick_other(kPeople, &who, rng);
  const Words food = pick(kFood, rng);
  const int children = number(rng, 2, 9);
  const int each = number(rng, 4, 10);
  const int own = number(rng, 2, children * each - 2);
  const int other = children * each - own;
  story.say(Words(who.name) + " brings " + text(own) + " " + food + " and " + friend_.name +
            " brings " + text(other) + ".");
  const int total = story.step(own, '+', other, {"Together they have", food});
  story.say("They share all of them equally among " + text(children) + " children.");
  const int share = story.step(total, '/', children, {"Each child gets", food});
  if (rng.chance(0.4)) {
    const int eaten = number(rng, 2, share - 2);
    story.say("Every child eats " + text(eaten) + " at once.");
    story.step(share, '-', eaten, {"Each child still has", food});
    story.say("How many " + food + " does each child still have?");
  } else {
    story.say("How many " + food + " does each child get?");
  }
}

// A book read at two speeds: 2 or 4 steps.
void reading(Story& story, Rng& rng) {
  const Person& who = pick(kPeople, rng);
  const int pages = number(rng, 3, 8);
  const int days = number(rng, 2, 5);
  const bool faster = rng.chance(0.5);
  const int fast_pages = pages + number(rng, 2, 4);
  const int fast_days = number(rng, 2, 3);
  const int left = number(rng, 5, 20);
  const int length = pages * days + (faster ? fast_pages * fast_days : 0) + left;
  story.say(Words(who.name) + " reads a book of " + text(length) + " pages, " + text(pages) +
            " pages a day for " + text(days) + " days.");
  int read = story.step(pages, '*', days, {"In these days that is", "pages"});
  if (faster) {
    story.say("After that " + Words(who.name) + " reads " + text(fast_pages) + " pages a day for " +
              text(fast_days) + " days.");
    const int more = story.step(fast_pages, '*', fast_days, {"The faster days give", "pages"});
    read = story.step(read, '+', more, {"So far that is", "pages"});
  }
  story.say("How many pages are left?");
  story.step(length, '-', read, {"There are still", "pages left"});
}

// Rows of plants, some lost, the rest bearing fruit: 2 or 3 steps.
void garden(Story& story, Rng& rng) {
  const Person& who = pick(kPeople, rng);
  const Words plants = pick(kPlants, rng);
  const int rows = number(rng, 3, 9);
  const int in_row = number(rng, 3, 9);
  story.say(Words(who.name) + " plants " + text(rows) + " rows of " + plants + ", " + text(in_row) +
            " in each row.");
  const int planted = story.step(rows, '*', in_row, {Words(who.name) + " plants", plants});
  const int lost = number(rng, 2, std::min(20, planted / 2));
  story.say(text(lost) + " of them do not grow.");
  const int grown = story.step(planted, '-', lost, {"That leaves", plants});
  if (2 * grown <= kLargest && rng.chance(0.7)) {
    const int water = number(rng, 2, std::min(6, kLargest / grown));
    story.say("Each of the others needs " + text(water) + " cups of water.");
    story.step(grown, '*', water, {"They need", "cups of water"});
    story.say("How many cups of water do they need?");
  } else {
    story.say("How many " + plants + " grow?");
  }
}

}  // namespace

Problem random_drill(Rng& rng) {
  constexpr std::array<char, 4> kOperators = {'+', '-', '*', '/'};
  const char op = pick(kOperators, rng);
  int left = 0;
  int right = 0;
  if (op == '+' || op == '-') {
    left = number(rng, 2, kLargest - 2);
    right = op == '+' ? number(rng, 2, kLargest - left) : number(rng, 1, left - 1);
  } else {
    left = number(rng, 2, 10);
    right = number(rng, 2, std::min(30, kLargest / left));
    if (op == '*' && rng.chance(0.5)) std::swap(left, right);
    if (op == '/') left *= right;
  }
  Story story;
  story.say("What is " + text(left) + op + text(right) + "?");
  story.step(left, op, right, {"", ""});
  return story.finish();
}

Problem random_word_problem(Rng& rng) {
  constexpr std::array kTemplates = {collection, containers, shopping, wages,
                                     sharing,    reading,    garden};
  Story story;
  pick(kTemplates, rng)(story, rng);
  return story.finish();
}

}  // namespace kvsweep::task
