// Package behaviourtest compares a table of behaviours with their tests. A test's doc comment ends with a
// tag, "Behaviour: 3, 7-9."; a story has it on a line after "# ". The table is Markdown: a row has the
// number, the behaviour and its tests, which Check writes or compares.
package behaviourtest
