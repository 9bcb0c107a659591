// Package behaviourtest compares a list of behaviours with their tests. A row of the list is a number, a tab
// and the behaviour. The doc comment of a test ends with a tag, "Behaviour: 3, 7-9."; in a .txtar story the
// line begins with "# ". If WEFT_PAGES names a directory, Check writes the list there, as Markdown.
package behaviourtest
