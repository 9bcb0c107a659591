// Package message turns fragments, tables and plans of package desired into messages of the
// protocol.
//
// Large answers become several messages of about [PartBytes], made when they are read. Read names.go
// first, then fragment.go, table.go and plan.go.
//
// The functions share the values that they get, and change them only where they say so.
//
// # Concurrency
//
// All functions are pure. The values of package desired that they get are immutable, so any goroutine
// may call them.
package message
