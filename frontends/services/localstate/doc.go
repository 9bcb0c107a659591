// Package localstate has the tables of the Service frontend: Services with their endpoints and outcomes.
//
// # Concurrency
//
// Tables are safe for concurrent use. Changed and OutcomesChanged never block.
//
// # Errors
//
// Before everything is known, a table has an error in place of rows. So has a missing Service.
package localstate
