// Package behaviourtest compares a table of behaviours with the tests that show them. A test
// says so in the last line of its doc comment, "Behaviour: 3, 7-9.", and a story in a line of
// its own after "# ". The table is Markdown: a row has the number, the behaviour, and the names
// of the tests, which Check writes or compares.
package behaviourtest
