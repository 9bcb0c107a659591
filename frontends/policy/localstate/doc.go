// Package localstate has the tables of the NetworkPolicy frontend: the pods of a node, and the policies
// that apply to them, with their outcomes.
//
// It takes snapshots from a Source, and returns tables for client.ServeTables. Read localstate.go first;
// rows.go has the rows. The package does not change the model.
//
// # Concurrency
//
// Tables are safe for concurrent use. Changed and OutcomesChanged never block.
//
// # Errors
//
// Before all objects are known, a table has an error in place of rows.
package localstate
