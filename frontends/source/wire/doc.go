// Package wire reads the fields of a message in protobuf that a program wants, and skips the
// rest.
//
// In comes an encoded message, such as a Pod as the API server sends it; out go its fields,
// one at a time, in their order. Nothing is copied and nothing is allocated. It is for
// objects of which little is read: to decode all of a Pod costs many times as much.
//
// # Concurrency
//
// The functions share nothing.
//
// # Errors
//
// A message that is not valid, or has groups (which Kubernetes never uses), is an error. What
// was passed on before must then be dropped.
package wire
