// Package message converts fragments, tables and plans of package desired to messages of the protocol.
//
// Large answers become several messages of about [PartBytes], made on demand. Read names.go first.
//
// # Concurrency
//
// Fragment completes its head, and Parts sorts shadows and live elements. Other functions are pure. Results
// share values with the arguments.
package message
