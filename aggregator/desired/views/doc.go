// Package views reads a state: statuses, content, merged tables, owners, and the record to store.
// Only [Record] writes to the state: its notes about stored shares.
package views
