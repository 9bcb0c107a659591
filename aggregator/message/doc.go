// Package message converts fragments, tables and plans of package desired to messages of the protocol.
//
// Large answers become several messages of about [PartBytes], made on demand. Read names.go first, then
// fragment.go, table.go and plan.go.
//
// Results share values with the arguments, which are changed only where documented.
//
// # Concurrency
//
// All functions are pure. Their arguments of package desired are immutable, so any goroutine may call them.
package message
