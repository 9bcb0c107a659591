// Package views reads a state: the status and content of fragments, merged tables, the owners of
// objects, and the record to store. It changes nothing that the merge depends on.
package views
