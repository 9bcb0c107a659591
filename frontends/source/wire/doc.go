// Package wire reads selected fields of a protobuf message and skips the rest.
//
// It yields the fields in order, without copying or allocating.
//
// # Concurrency
//
// The functions share no state.
//
// # Errors
//
// An invalid message, or a message with groups (never used by Kubernetes), is an error. Fields passed on
// before must then be dropped.
package wire
