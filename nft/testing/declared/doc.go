// Package declared compiles the declarations of tables for tests: the rules of a Table are compiled with it as
// their scope. Package set cannot use it in tests of its own, because it imports it.
package declared
