// Package localstate has the tables of the NetworkPolicy frontend: pods and policies with their
// outcomes.
//
// # Concurrency
//
// Tables are safe for concurrent use. Changed and OutcomesChanged never block.
//
// # Errors
//
// Before all objects are known, a table has an error in place of rows.
package localstate
