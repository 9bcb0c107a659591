// Package wire reads selected fields of a protobuf message and skips the rest.
//
// It takes an encoded message, such as a Pod from the API server, and yields its fields in order, without
// copying or allocating. Use it to read few fields: decoding a whole Pod costs many times as much.
//
// # Concurrency
//
// The functions share no state.
//
// # Errors
//
// An invalid message, or one with groups (never used by Kubernetes), is an error. Fields passed on before
// must then be dropped.
package wire
