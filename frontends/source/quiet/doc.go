// Package quiet keeps what client-go logs readable: it logs every attempt at an
// API server that is in trouble, and requests that ended with their context.
//
// A handler passes each message on once in a while. Two messages are the same if
// their text and all their attributes are.
package quiet
