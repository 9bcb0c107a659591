// Package views reads a state: statuses, content, merged tables, owners, and the record to store.
// It changes no input of the merge.
package views
